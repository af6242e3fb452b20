package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/datalayer"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/plugin"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/requestcontrol"
	fwksched "sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/interface/scheduling"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/datalayer/attribute/prefix"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/picker"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/profile"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/scorer/kvcacheutilization"
	prefixscorer "sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/scorer/prefix"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/framework/plugins/scheduling/scorer/queuedepth"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling"

	"gateways/pleach"
)

// newPicker is a scheduler with one profile, its picker of the highest score, and the scorers.
func newPicker(ours bool, parameters string) (func(asked) int, error) {
	ctx := context.Background()
	plugin.Register(pleach.PluginType, pleach.Factory)
	made, err := plugin.Registry[pleach.PluginType]("tree", json.RawMessage(parameters), nil)
	if err != nil {
		return nil, err
	}
	tree := made.(*pleach.Plugin)
	scorers := []*scheduling.WeightedScorer{scheduling.NewWeightedScorer(tree, 1)}
	if !ours {
		held, err := prefixscorer.New(ctx)
		if err != nil {
			return nil, err
		}
		scorers = []*scheduling.WeightedScorer{
			scheduling.NewWeightedScorer(queuedepth.NewQueueScorer(), 2),
			scheduling.NewWeightedScorer(kvcacheutilization.NewKVCacheUtilizationScorer(), 2),
			scheduling.NewWeightedScorer(held, 3),
		}
	}
	own := scheduling.NewSchedulerProfile().WithScorers(scorers...).WithPicker(picker.NewMaxScorePicker(1))
	profiles := map[string]fwksched.SchedulerProfile{"default": own}
	scheduler := scheduling.NewSchedulerWithConfig(scheduling.NewSchedulerConfig(profile.NewSingleProfileHandler(), profiles))
	ended := map[int]int{}
	return func(line asked) int {
		tree.Now = func() time.Time { return line.now }
		request := &fwksched.LLMRequest{RequestId: fmt.Sprint(line.number), TargetModel: "model",
			TokenizedPrompt: &fwksched.TokenizedPrompt{TokenIDs: make([]uint32, line.promptTokens)}}
		var endpoints []fwksched.Endpoint
		for i, told := range line.endpoints {
			endpoint := fwksched.NewEndpoint(
				&datalayer.EndpointMetadata{NamespacedName: types.NamespacedName{Namespace: "pool", Name: fmt.Sprint(i)}},
				&datalayer.Metrics{WaitingQueueSize: told.waiting, RunningRequestsSize: told.running,
					KVCacheUsagePercent: told.kvUse, UpdateTime: line.toldAt}, nil)
			for ; ended[i] < told.ended; ended[i]++ {
				tree.ResponseBody(ctx, request, &requestcontrol.Response{EndOfStream: true}, endpoint.GetMetadata())
			}
			endpoint.Put(prefix.PrefixCacheMatchInfoKey, prefix.NewPrefixCacheMatchInfo(told.held, line.promptTokens, 1))
			endpoints = append(endpoints, endpoint)
		}
		if ours && tree.AdmitRequest(ctx, request, endpoints) != nil {
			return -1
		}
		result, err := scheduler.Schedule(ctx, request, endpoints)
		if err != nil {
			panic(err)
		}
		tree.PreRequest(ctx, request, result)
		name := result.ProfileResults[result.PrimaryProfileName].TargetEndpoints[0].GetMetadata().NamespacedName.Name
		chosen, err := strconv.Atoi(name)
		if err != nil {
			panic(err)
		}
		return chosen
	}, nil
}
