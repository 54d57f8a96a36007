// What GitOps tools make of an object: kstatus, as in Flux, and a health check of Argo CD in the
// interpreter that Argo CD uses. Reads the object as JSON from standard input; the argument is the
// path of the health check. Prints {"kstatus": STATUS, "argo": {"status", "message"}}.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type verdicts struct {
	Kstatus string `json:"kstatus"`
	Argo    health `json:"argo"`
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("give the path of the health check"))
	}
	check, err := os.ReadFile(os.Args[1])
	fail(err)
	object := &unstructured.Unstructured{}
	fail(json.NewDecoder(os.Stdin).Decode(object))
	flux, err := status.Compute(object)
	fail(err)
	argo, err := run(string(check), object.Object)
	fail(err)
	fail(json.NewEncoder(os.Stdout).Encode(verdicts{Kstatus: flux.Status.String(), Argo: argo}))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
		os.Exit(1)
	}
}

// run executes a health check. It opens no library that Argo CD does not open by default.
func run(check string, object map[string]any) (health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	libraries := map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable}
	for name, open := range libraries {
		call := lua.P{Fn: state.NewFunction(open), Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			return health{}, err
		}
	}
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(check); err != nil {
		return health{}, err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return health{}, fmt.Errorf("the health check returned no table but %s", state.Get(-1).Type())
	}
	told := health{Status: lua.LVAsString(result.RawGetString("status")), Message: lua.LVAsString(result.RawGetString("message"))}
	switch told.Status {
	case "Healthy", "Progressing", "Degraded", "Suspended":
		return told, nil
	}
	return health{}, fmt.Errorf("Argo CD does not know the status %q", told.Status)
}

// value converts a JSON value.
func value(state *lua.LState, of any) lua.LValue {
	switch of := of.(type) {
	case bool:
		return lua.LBool(of)
	case string:
		return lua.LString(of)
	case int64:
		return lua.LNumber(of)
	case float64:
		return lua.LNumber(of)
	case []any:
		table := state.NewTable()
		for _, item := range of {
			table.Append(value(state, item))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, field := range of {
			table.RawSetString(key, value(state, field))
		}
		return table
	}
	return lua.LNil
}
