#!/usr/bin/env bash
# Puts into the source of Kubernetes 1.20.2, in the present folder: scheduling gates after the rules of 1.27 (the field, what may be
# changed of it, a scheduler that leaves gated pods alone); evictions of policy/v1, which came with 1.22; and an iteration of maps
# that does not crash with Go 1.18 and later wherever a webhook patches. For tests. Lines are told by number, so only for these files:
set -euo pipefail
sha256sum --quiet -c <<'END'
03af1fd37ca3ab7c0d894dccd2d49550f78da746e319332dc421659017a712d1  pkg/apis/core/types.go
bbaabf0369141ba6444eef1e0321739e502a784e0550c9a49e2c083a26662817  pkg/apis/core/validation/validation.go
5d281c6c2bdaafe97448836c0d110d422215df28c591e0200c4935ab7937a7df  pkg/apis/policy/install/install.go
d843fe135e58044d575618212ef79c4b00cd8297b3092b6c95cd4323bb428091  pkg/registry/core/pod/storage/eviction.go
a9585ce4216d10d909bbfd66617fd091890593f936fc5fde18b66bc13402d7df  pkg/registry/core/pod/storage/storage.go
b09fe40aab6c3f80edde0fefae5266947a9bc131c26cad44b30879c47a02b243  pkg/scheduler/eventhandlers.go
1c591ddf0385515042c94c1c673f19f6d18f77597b283cbc89643f075a0423cc  staging/src/k8s.io/api/core/v1/types.go
667943fcfca9558b00146a2008d538303a01bdd97a340340c75b2368457dfb12  vendor/github.com/modern-go/reflect2/unsafe_link.go
5f803964ea40e43ea5a01a78d18199dd7ce566f60907871bc8d788f64f4f5f7d  vendor/github.com/modern-go/reflect2/unsafe_map.go
END

# after FILE LINE: puts what comes behind a line. Of one file the last place comes first, so that numbers stay right.
after() { sed -i "$2r /dev/stdin" "$1"; }

after staging/src/k8s.io/api/core/v1/types.go 3136 <<'END'
	// SchedulingGates are gates that hold the pod back from the scheduler while there are any.
	// They are set when the pod is made and can only be taken away.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	SchedulingGates []PodSchedulingGate `json:"schedulingGates,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,38,opt,name=schedulingGates"`
}

// PodSchedulingGate is a gate of a pod.
type PodSchedulingGate struct {
	// Name of the gate.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
END

after pkg/apis/core/types.go 2771 <<'END'
	// SchedulingGates are gates that hold the pod back from the scheduler while there are any.
	// They are set when the pod is made and can only be taken away.
	// +optional
	SchedulingGates []PodSchedulingGate
END
after pkg/apis/core/types.go 2696 <<'END'
// PodSchedulingGate is a gate of a pod.
type PodSchedulingGate struct {
	// Name of the gate.
	Name string
}

END

after pkg/apis/core/validation/validation.go 3999 <<'END'
	// Gates can only be taken away; while there are some, the node selector can be added to.
	for _, gate := range newPod.Spec.SchedulingGates {
		had := false
		for _, old := range oldPod.Spec.SchedulingGates {
			had = had || old.Name == gate.Name
		}
		if !had {
			said := fmt.Sprintf("gates can only be taken away, and %q is new", gate.Name)
			allErrs = append(allErrs, field.Forbidden(specPath.Child("schedulingGates"), said))
		}
	}
	mungedPod.Spec.SchedulingGates = oldPod.Spec.SchedulingGates
	if len(oldPod.Spec.SchedulingGates) > 0 {
		for key, value := range oldPod.Spec.NodeSelector {
			if other, has := newPod.Spec.NodeSelector[key]; !has || other != value {
				said := "of a gated pod it can only be added to"
				allErrs = append(allErrs, field.Invalid(specPath.Child("nodeSelector"), newPod.Spec.NodeSelector, said))
			}
		}
		mungedPod.Spec.NodeSelector = oldPod.Spec.NodeSelector
	}

END

after pkg/registry/core/pod/storage/storage.go 203 <<'END'
		if len(pod.Spec.SchedulingGates) > 0 {
			return nil, fmt.Errorf("pod %v is gated", pod.Name)
		}
END
sed -i '75s/"v1beta1"/"v1"/' pkg/registry/core/pod/storage/eviction.go
sed -i '307s/$/ \&\& len(pod.Spec.SchedulingGates) == 0/' pkg/scheduler/eventhandlers.go

after pkg/apis/policy/install/install.go 36 <<'END'
	// Evictions are sent as policy/v1 since 1.22; their fields are the same.
	eviction := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}
	scheme.AddKnownTypeWithName(eviction, &policyv1beta1.Eviction{})
END
after pkg/apis/policy/install/install.go 22 <<'END'
	"k8s.io/apimachinery/pkg/runtime/schema"
END
after pkg/apis/policy/install/install.go 21 <<'END'
	policyv1beta1 "k8s.io/api/policy/v1beta1"
END

# Since Go 1.18 the caller makes the iterator, and the runtime needs more room in it.
reflect=vendor/github.com/modern-go/reflect2
sed -i '112s/mapiterinit(.*$/it,/' $reflect/unsafe_map.go
after $reflect/unsafe_map.go 110 <<'END'
	it := &hiter{}
	mapiterinit(type2.rtype, *(*unsafe.Pointer)(obj), it)
END
sed -i '47s/.*//' $reflect/unsafe_link.go
after $reflect/unsafe_link.go 46 <<'END'
	// What follows is the runtime's own, as in Go 1.18 to 1.23: pointers, and words that are none.
	pointers [6]unsafe.Pointer
	words    [4]uintptr
END
sed -i '32s/) \*hiter/, it *hiter)/' $reflect/unsafe_link.go
