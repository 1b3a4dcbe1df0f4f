// SPDX-License-Identifier: Apache-2.0

// Drives an API that claims to be Linode's with Linode's own library, and prints what it saw as one JSON object.
// LINODE_URL and LINODE_TOKEN say where it is.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/linode/linodego"
)

type facts map[string]any

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	client := linodego.NewClient(&http.Client{Timeout: 10 * time.Second})
	client.SetBaseURL(os.Getenv("LINODE_URL"))
	client.SetAPIVersion("v4beta")
	client.SetToken(os.Getenv("LINODE_TOKEN"))
	client.SetPollDelay(100)
	client.SetRetryMaxWaitTime(5 * time.Second)
	seen := facts{}
	steps := []func(context.Context, *linodego.Client, facts) error{
		catalogue, cluster, instance, tags, network, placement, keys, refusals,
	}
	for _, step := range steps {
		if err := step(ctx, &client, seen); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		panic(err)
	}
}

func catalogue(ctx context.Context, client *linodego.Client, seen facts) error {
	types, err := client.ListTypes(ctx, nil)
	if err != nil {
		return fmt.Errorf("list types: %w", err)
	}
	one, err := client.GetType(ctx, "g6-standard-2")
	if err != nil {
		return fmt.Errorf("get type: %w", err)
	}
	regions, err := client.ListRegions(ctx, nil)
	if err != nil {
		return fmt.Errorf("list regions: %w", err)
	}
	sold, err := client.GetRegionAvailability(ctx, "us-ord")
	availability := 0
	if err == nil && sold != nil {
		availability = 1
	}
	all, err := client.ListRegionsAvailability(ctx, nil)
	if err != nil {
		return fmt.Errorf("list availability: %w", err)
	}
	images, err := client.ListImages(ctx, nil)
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	kernels, err := client.ListKernels(ctx, nil)
	if err != nil {
		return fmt.Errorf("list kernels: %w", err)
	}
	versions, err := client.ListLKEVersions(ctx, nil)
	if err != nil {
		return fmt.Errorf("list versions: %w", err)
	}
	profile, err := client.GetProfile(ctx)
	if err != nil {
		return fmt.Errorf("get profile: %w", err)
	}
	seen["types"] = len(types)
	seen["standard2"] = []any{one.VCPUs, one.Memory, one.Price.Hourly, one.RegionPrices[0].ID}
	seen["regions"] = len(regions)
	seen["availability"] = availability
	// More than a page of them.
	seen["availabilities"] = len(all)
	seen["images"] = len(images)
	seen["kernels"] = len(kernels)
	seen["versions"] = len(versions)
	seen["user"] = profile.Username
	return nil
}

func cluster(ctx context.Context, client *linodego.Client, seen facts) error {
	made, err := client.CreateLKECluster(ctx, linodego.LKEClusterCreateOptions{
		Label: "from-go", Region: "us-ord", K8sVersion: "1.36", Tier: "standard",
		NodePools: []linodego.LKENodePoolCreateOptions{{Type: "g6-standard-1", Count: 1}},
	})
	if err != nil {
		return fmt.Errorf("create cluster: %w", err)
	}
	filter := linodego.Filter{}
	filter.AddField(linodego.Eq, "label", "from-go")
	text, err := filter.MarshalJSON()
	if err != nil {
		return err
	}
	found, err := client.ListLKEClusters(ctx, linodego.NewListOptions(0, string(text)))
	if err != nil {
		return fmt.Errorf("find cluster: %w", err)
	}
	pool, err := client.CreateLKENodePool(ctx, made.ID, linodego.LKENodePoolCreateOptions{
		Type: "g6-standard-2", Count: 1, Tags: []string{"karpenter"},
		Labels: linodego.LKENodePoolLabels{"team": "a"},
		Taints: []linodego.LKENodePoolTaint{{Key: "team", Value: "a", Effect: linodego.LKENodePoolTaintEffectNoExecute}},
	})
	if err != nil {
		return fmt.Errorf("create pool: %w", err)
	}
	scaled, err := client.UpdateLKENodePool(ctx, made.ID, pool.ID, linodego.LKENodePoolUpdateOptions{Count: 2})
	if err != nil {
		return fmt.Errorf("scale pool: %w", err)
	}
	var ready *linodego.LKENodePool
	for {
		if ready, err = client.GetLKENodePool(ctx, made.ID, pool.ID); err != nil {
			return fmt.Errorf("get pool: %w", err)
		}
		if ready.Linodes[0].Status == linodego.LKELinodeReady && ready.Linodes[1].Status == linodego.LKELinodeReady {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	linode, err := client.GetInstance(ctx, ready.Linodes[0].InstanceID)
	if err != nil {
		return fmt.Errorf("get linode of pool: %w", err)
	}
	config, err := client.GetLKEClusterKubeconfig(ctx, made.ID)
	if err != nil {
		return fmt.Errorf("get kubeconfig: %w", err)
	}
	if err := client.DeleteLKENodePoolNode(ctx, made.ID, ready.Linodes[0].ID); err != nil {
		return fmt.Errorf("delete node: %w", err)
	}
	pools, err := client.ListLKENodePools(ctx, made.ID, nil)
	if err != nil {
		return fmt.Errorf("list pools: %w", err)
	}
	if err := client.DeleteLKECluster(ctx, made.ID); err != nil {
		return fmt.Errorf("delete cluster: %w", err)
	}
	_, gone := client.GetLKECluster(ctx, made.ID)
	seen["cluster"] = []any{made.Label, made.Tier, string(made.Status), len(found)}
	seen["pool"] = []any{pool.Type, pool.Count, pool.Labels["team"], pool.Taints[0].Key, scaled.Count}
	seen["linodeOfPool"] = []any{string(linode.Status), linode.LKEClusterID == made.ID, linode.Tags}
	seen["kubeconfig"] = len(config.KubeConfig) > 0
	seen["poolsLeft"] = []any{len(pools), pools[1].Count}
	seen["clusterGone"] = code(gone)
	return nil
}

func instance(ctx context.Context, client *linodego.Client, seen facts) error {
	booted := true
	made, err := client.CreateInstance(ctx, linodego.InstanceCreateOptions{
		Label: "from-go", Region: "us-ord", Type: "g6-standard-1", Image: "linode/ubuntu24.04", RootPass: "aComplex-P4ss",
		Tags: []string{"karpenter.sh/nodeclaim=default-abcde"}, Booted: &booted,
		Metadata: &linodego.InstanceMetadataOptions{UserData: base64.StdEncoding.EncodeToString([]byte("#cloud-config\n"))},
	})
	if err != nil {
		return fmt.Errorf("create linode: %w", err)
	}
	running, err := client.WaitForInstanceStatus(ctx, made.ID, linodego.InstanceRunning, 30)
	if err != nil {
		return fmt.Errorf("wait for linode: %w", err)
	}
	// As the provider finds its own: two tags at once.
	text := `{"+and":[{"tags":{"+contains":"karpenter.sh/nodeclaim="}},{"region":"us-ord"}]}`
	found, err := client.ListInstances(ctx, linodego.NewListOptions(0, text))
	if err != nil {
		return fmt.Errorf("find linode: %w", err)
	}
	label := "from-go-2"
	updated, err := client.UpdateInstance(ctx, made.ID, linodego.InstanceUpdateOptions{Label: label, Tags: &[]string{"one", "two"}})
	if err != nil {
		return fmt.Errorf("update linode: %w", err)
	}
	configs, err := client.ListInstanceConfigs(ctx, made.ID, nil)
	if err != nil {
		return fmt.Errorf("list configs: %w", err)
	}
	disks, err := client.ListInstanceDisks(ctx, made.ID, nil)
	if err != nil {
		return fmt.Errorf("list disks: %w", err)
	}
	ips, err := client.GetInstanceIPAddresses(ctx, made.ID)
	if err != nil {
		return fmt.Errorf("get addresses: %w", err)
	}
	if err := client.RebootInstance(ctx, made.ID, 0); err != nil {
		return fmt.Errorf("reboot linode: %w", err)
	}
	if _, err := client.WaitForInstanceStatus(ctx, made.ID, linodego.InstanceRunning, 30); err != nil {
		return fmt.Errorf("wait for reboot: %w", err)
	}
	if err := client.DeleteInstance(ctx, made.ID); err != nil {
		return fmt.Errorf("delete linode: %w", err)
	}
	seen["instance"] = []any{string(made.Status), string(running.Status), made.HasUserData, len(found)}
	seen["updated"] = []any{updated.Label, strings.Join(updated.Tags, ",")}
	seen["parts"] = []any{len(configs), len(disks), len(ips.IPv4.Public)}
	return nil
}

func tags(ctx context.Context, client *linodego.Client, seen facts) error {
	if _, err := client.CreateTag(ctx, linodego.TagCreateOptions{Label: "from-go-tag"}); err != nil {
		return fmt.Errorf("create tag: %w", err)
	}
	all, err := client.ListTags(ctx, nil)
	if err != nil {
		return fmt.Errorf("list tags: %w", err)
	}
	there := false
	for _, tag := range all {
		there = there || tag.Label == "from-go-tag"
	}
	if err := client.DeleteTag(ctx, "from-go-tag"); err != nil {
		return fmt.Errorf("delete tag: %w", err)
	}
	seen["tag"] = there
	return nil
}

func network(ctx context.Context, client *linodego.Client, seen facts) error {
	firewall, err := client.CreateFirewall(ctx, linodego.FirewallCreateOptions{
		Label: "from-go", Rules: linodego.FirewallRuleSet{InboundPolicy: "DROP", OutboundPolicy: "ACCEPT"},
	})
	if err != nil {
		return fmt.Errorf("create firewall: %w", err)
	}
	vpc, err := client.CreateVPC(ctx, linodego.VPCCreateOptions{
		Label: "from-go", Region: "us-ord",
		Subnets: []linodego.VPCSubnetCreateOptions{{Label: "nodes", IPv4: "10.0.1.0/24"}},
	})
	if err != nil {
		return fmt.Errorf("create vpc: %w", err)
	}
	booted := false
	subnet := vpc.Subnets[0].ID
	inside, err := client.CreateInstance(ctx, linodego.InstanceCreateOptions{
		Label: "from-go-vpc", Region: "us-ord", Type: "g6-standard-1", Image: "linode/ubuntu24.04", RootPass: "aComplex-P4ss",
		FirewallID: firewall.ID, Booted: &booted,
		Interfaces: []linodego.InstanceConfigInterfaceCreateOptions{{Purpose: linodego.InterfacePurposeVPC, SubnetID: &subnet, Primary: true}},
	})
	if err != nil {
		return fmt.Errorf("create linode in vpc: %w", err)
	}
	guarded, err := client.ListInstanceFirewalls(ctx, inside.ID, nil)
	if err != nil {
		return fmt.Errorf("list firewalls of linode: %w", err)
	}
	members, err := client.GetVPCSubnet(ctx, vpc.ID, subnet)
	if err != nil {
		return fmt.Errorf("get subnet: %w", err)
	}
	busy := client.DeleteVPC(ctx, vpc.ID)
	if err := client.DeleteInstance(ctx, inside.ID); err != nil {
		return fmt.Errorf("delete linode in vpc: %w", err)
	}
	if err := client.DeleteVPC(ctx, vpc.ID); err != nil {
		return fmt.Errorf("delete vpc: %w", err)
	}
	if err := client.DeleteFirewall(ctx, firewall.ID); err != nil {
		return fmt.Errorf("delete firewall: %w", err)
	}
	seen["network"] = []any{guarded[0].Label, members.Linodes[0].ID == inside.ID, code(busy)}
	return nil
}

func placement(ctx context.Context, client *linodego.Client, seen facts) error {
	group, err := client.CreatePlacementGroup(ctx, linodego.PlacementGroupCreateOptions{
		Label: "from-go", Region: "us-ord",
		PlacementGroupType:   linodego.PlacementGroupTypeAntiAffinityLocal,
		PlacementGroupPolicy: linodego.PlacementGroupPolicyFlexible,
	})
	if err != nil {
		return fmt.Errorf("create placement group: %w", err)
	}
	made, err := client.CreateInstance(ctx, linodego.InstanceCreateOptions{
		Label: "from-go-pg", Region: "us-ord", Type: "g6-standard-1",
		PlacementGroup: &linodego.InstanceCreatePlacementGroupOptions{ID: group.ID},
	})
	if err != nil {
		return fmt.Errorf("create linode in placement group: %w", err)
	}
	with, err := client.GetPlacementGroup(ctx, group.ID)
	if err != nil {
		return fmt.Errorf("get placement group: %w", err)
	}
	if err := client.DeleteInstance(ctx, made.ID); err != nil {
		return fmt.Errorf("delete linode in placement group: %w", err)
	}
	if err := client.DeletePlacementGroup(ctx, group.ID); err != nil {
		return fmt.Errorf("delete placement group: %w", err)
	}
	seen["placement"] = []any{made.PlacementGroup.Label, len(with.Members), with.IsCompliant}
	return nil
}

func keys(ctx context.Context, client *linodego.Client, seen facts) error {
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBnU9zb8T0v1T3m0n0aVjY0a2dJ0S5rXl0Yq1b3c4d5e karpenter"
	made, err := client.CreateSSHKey(ctx, linodego.SSHKeyCreateOptions{Label: "from-go", SSHKey: key})
	if err != nil {
		return fmt.Errorf("create key: %w", err)
	}
	all, err := client.ListSSHKeys(ctx, nil)
	if err != nil {
		return fmt.Errorf("list keys: %w", err)
	}
	if err := client.DeleteSSHKey(ctx, made.ID); err != nil {
		return fmt.Errorf("delete key: %w", err)
	}
	seen["keys"] = []any{made.Label, len(all)}
	return nil
}

func refusals(ctx context.Context, client *linodego.Client, seen facts) error {
	_, bad := client.CreateInstance(ctx, linodego.InstanceCreateOptions{Region: "nowhere", Type: "g6-standard-1"})
	_, missing := client.GetInstance(ctx, 1)
	_, soldOut := client.CreateInstance(ctx, linodego.InstanceCreateOptions{Region: "us-ord", Type: "g6-dedicated-2"})
	stranger := linodego.NewClient(&http.Client{})
	stranger.SetBaseURL(os.Getenv("LINODE_URL"))
	stranger.SetToken("not-a-token")
	_, denied := stranger.GetProfile(ctx)
	_, unknown := client.GetDomain(ctx, 1)
	seen["refused"] = []any{code(bad), bad.Error(), code(missing), code(soldOut), code(denied), code(unknown)}
	// The library waits and asks again by itself: the answer comes, later.
	started := time.Now()
	settings, err := client.GetAccountSettings(ctx)
	if err != nil {
		return fmt.Errorf("ask again: %w", err)
	}
	seen["throttled"] = []any{settings.NetworkHelper, time.Since(started) > 900*time.Millisecond}
	return nil
}

// The status of an answer; 0 where there was no error.
func code(err error) int {
	var refusal *linodego.Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return 0
}
