module aviary.test/workload

go 1.25.0
