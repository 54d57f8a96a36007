//! `aviary demo`: the story must go as it should, and be told the same every time.

mod transcript;

use expect_test::expect;
use transcript::desk;

#[test]
fn the_story_is_told_to_its_end() {
    desk("demo").check("demo --clusters 50", &expect![[r#"
        $ aviary demo --clusters 50
        1. v0.10.0 is installed everywhere
        helloworld on 50 clusters
          each takes 10s to 60s, 0% fail, 0% cannot be reached, 0% flap; seed 1

          time   default/aws-placement           default/canary-placement
          0s     ........................ 0/40   ........................ 0/10
          30s    ##########>>>>>>>>>>>>>> 18/40  >>>>>>>>>>>>>>>>>>>>>>>> 0/10
          59s    #######################> 39/40  >>>>>>>>>>>>>>>>>>>>>>>> 0/10
          1m1s   ######################## 40/40  >>>>>>>>>>>>>>>>>>>>>>>> 0/10
          5m30s  ######################## 40/40  ############>>>>>>>>>>>> 5/10
          6m1s   ######################## 40/40  ######################## 10/10
          # has it  > in flight  . not started

          placement                 clusters  budget  most at once  settled  failed  waiting  in the end
          default/aws-placement           40      10            40       40       0        0  40/40 install completed with no errors.
          default/canary-placement        10       3            10       10       0        0  10/10 install completed with no errors.

        Every cluster has settled after 6m1s. 61 passes, 210 writes.

        2. v0.11.0 goes to the canary, then to the fleet
        helloworld on 50 clusters
          each takes 10s to 60s, 0% fail, 0% cannot be reached, 0% flap; seed 1

          time    default/aws-placement           default/canary-placement
          0s      ........................ 0/40   >>>>>>>................. 0/10
          1s      ........................ 0/40   >>>>>>>................. 0/10
          6m      ........................ 0/40   #######>>>>>>>.......... 3/10
          11m30s  ........................ 0/40   ##############>>>>>>>... 6/10
          17m4s   ........................ 0/40   #####################>>> 9/10
          22m16s  ###>>>>>>............... 5/40   ######################## 10/10
          24m22s  ######################## 40/40  ######################## 10/10
          # has it  > in flight  . not started

          placement                 clusters  budget  most at once  settled  failed  waiting  in the end
          default/aws-placement           40      10            10       40       0        0  40/40 upgrade completed with no errors.
          default/canary-placement        10       3             3       10       0        0  10/10 upgrade completed with no errors.

        Every cluster has settled after 24m22s. 126 passes, 193 writes.

        3. v0.12.0 is bad: it stops in the canary
        helloworld on 50 clusters
          each takes 10s to 60s, 100% fail, 0% cannot be reached, 0% flap; seed 1

          time  default/aws-placement          default/canary-placement
          0s    ........................ 0/40  >>>>>>>................. 0/10
          14s   ........................ 0/40  >>>>>>>................. 0/10 1 failed
          33s   ........................ 0/40  >>>>>>>................. 0/10 2 failed
          37s   ........................ 0/40  >>>>>>>................. 0/10 3 failed
          # has it  > in flight  . not started

          placement                 clusters  budget  most at once  settled  failed  waiting  in the end
          default/aws-placement           40      10             0       40       0        0  waitingForCanary... canary default/canary-placement: 10 of 10 not passed, first canary-01
          default/canary-placement        10       3             3        0       3        7  3/10 upgrade failed: stopped, 3 failed of 3 allowed in flight: canary-01, canary-02, canary-03

        It stops after 37s: 50 clusters without what is wanted. 9 passes, 12 writes.
              40  canary default/canary-placement: 10 of 10 not passed, first canary-01  aws-01, aws-02, aws-03 and 37 more
               7  budget full: 3 of 3 in flight  canary-04, canary-05, canary-06 and 4 more
               3  failed: work reports Applied=False: rehearsed failure  canary-01, canary-02, canary-03

        4. back to v0.11.0, which touches only what had moved
        helloworld on 50 clusters
          each takes 10s to 60s, 0% fail, 0% cannot be reached, 0% flap; seed 1

          time   default/aws-placement           default/canary-placement
          0s     ######################## 40/40  ################>>>>>>>> 7/10
          5m25s  ######################## 40/40  ###################>>>>> 8/10
          5m58s  ######################## 40/40  ######################## 10/10
          # has it  > in flight  . not started

          placement                 clusters  budget  most at once  settled  failed  waiting  in the end
          default/aws-placement           40      10             0       40       0        0  40/40 upgrade completed with no errors.
          default/canary-placement        10       3             3       10       0        0  10/10 upgrade completed with no errors.

        Every cluster has settled after 5m58s. 14 passes, 15 writes.

        Nothing was written. Next: aviary rehearse --help # with your own files
    "#]]);
}
