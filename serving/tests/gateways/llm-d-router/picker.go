package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/llm-d/llm-d-router/pkg/epp/datalayer"
	fwkdl "github.com/llm-d/llm-d-router/pkg/epp/framework/interface/datalayer"
	"github.com/llm-d/llm-d-router/pkg/epp/framework/interface/plugin"
	"github.com/llm-d/llm-d-router/pkg/epp/framework/interface/requestcontrol"
	"github.com/llm-d/llm-d-router/pkg/epp/framework/interface/requesthandling"
	fwksched "github.com/llm-d/llm-d-router/pkg/epp/framework/interface/scheduling"
	"github.com/llm-d/llm-d-router/pkg/epp/framework/plugins/datalayer/attribute/prefix"
	"github.com/llm-d/llm-d-router/pkg/epp/framework/plugins/scheduling/picker/maxscore"
	"github.com/llm-d/llm-d-router/pkg/epp/framework/plugins/scheduling/profilehandler/single"
	"github.com/llm-d/llm-d-router/pkg/epp/framework/plugins/scheduling/scorer/kvcacheutilization"
	prefixscorer "github.com/llm-d/llm-d-router/pkg/epp/framework/plugins/scheduling/scorer/prefix"
	"github.com/llm-d/llm-d-router/pkg/epp/framework/plugins/scheduling/scorer/queuedepth"
	"github.com/llm-d/llm-d-router/pkg/epp/scheduling"

	"gateways/pleach"
)

// newPicker is a scheduler with one profile, its picker of the highest score, and the scorers.
func newPicker(ours bool, parameters string) (func(asked) int, error) {
	ctx := context.Background()
	plugin.Register(pleach.PluginType, plugin.StabilityAlpha, pleach.Factory)
	made, err := plugin.Registry[pleach.PluginType]("tree", plugin.StrictDecoder([]byte(parameters)), nil)
	if err != nil {
		return nil, err
	}
	tree := made.(*pleach.Plugin)
	scorers := []*scheduling.WeightedScorer{scheduling.NewWeightedScorer(tree, 1)}
	if !ours {
		held, err := prefixscorer.New(ctx, "held", "")
		if err != nil {
			return nil, err
		}
		scorers = []*scheduling.WeightedScorer{
			scheduling.NewWeightedScorer(queuedepth.NewQueueScorer(), 2),
			scheduling.NewWeightedScorer(kvcacheutilization.NewKVCacheUtilizationScorer(), 2),
			scheduling.NewWeightedScorer(held, 3),
		}
	}
	// Scorers see of an endpoint what they say that they read, and nothing else.
	var all []plugin.Plugin
	for _, scorer := range scorers {
		all = append(all, scorer.Scorer)
	}
	datalayer.RegisterScopeSpecs(all)
	own := scheduling.NewSchedulerProfile().WithScorers(scorers...).WithPicker(maxscore.NewMaxScorePicker(1))
	profiles := map[string]fwksched.SchedulerProfile{"default": own}
	scheduler := scheduling.NewSchedulerWithConfig(scheduling.NewSchedulerConfig(single.NewSingleProfileHandler(), profiles))
	ended := map[int]int{}
	return func(line asked) int {
		tree.Now = func() time.Time { return line.now }
		request := &fwksched.InferenceRequest{RequestID: fmt.Sprint(line.number), TargetModel: "model",
			Body: &requesthandling.InferenceRequestBody{TokenizedRequest: &requesthandling.TokenizedRequest{
				Prompts: []requesthandling.PromptTokens{{TokenIDs: make([]uint32, line.promptTokens)}}}}}
		var endpoints []fwksched.Endpoint
		for i, told := range line.endpoints {
			endpoint := fwksched.NewEndpoint(
				&fwkdl.EndpointMetadata{ID: types.NamespacedName{Namespace: "pool", Name: fmt.Sprint(i)}},
				&fwkdl.Metrics{WaitingQueueSize: told.waiting, RunningRequestsSize: told.running,
					KVCacheUsagePercent: told.kvUse, UpdateTime: line.toldAt}, nil)
			for ; ended[i] < told.ended; ended[i]++ {
				tree.ResponseBody(ctx, request, &requestcontrol.Response{EndOfStream: true}, endpoint.GetMetadata())
			}
			endpoint.Put(prefix.PrefixCacheMatchInfoDataKey, prefix.NewPrefixCacheMatchInfo(told.held, line.promptTokens, 1))
			endpoints = append(endpoints, endpoint)
		}
		if ours && tree.Admit(ctx, request, endpoints) != nil {
			return -1
		}
		result, err := scheduler.Schedule(ctx, request, endpoints)
		if err != nil {
			panic(err)
		}
		if err := tree.PreRequest(ctx, request, result); err != nil {
			panic(err)
		}
		name := result.ProfileResults[result.PrimaryProfileName].TargetEndpoints[0].GetMetadata().ID.Name
		chosen, err := strconv.Atoi(name)
		if err != nil {
			panic(err)
		}
		return chosen
	}, nil
}
