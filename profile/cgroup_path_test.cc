#include "profile/cgroup_path.h"

#include <gtest/gtest.h>

#include <vector>

namespace tributary {
namespace {

// Paths from public issue threads and from the tests of other tools, with the source next to each path.
struct Case {
  std::string path;
  CgroupPath expected;
};

void Check(const std::vector<Case>& cases) {
  for (const auto& [path, expected] : cases) {
    const CgroupPath parsed = ParseCgroupPath(path);
    EXPECT_EQ(parsed.container_id, expected.container_id) << path;
    EXPECT_EQ(parsed.runtime, expected.runtime) << path;
    EXPECT_EQ(parsed.pod_uid, expected.pod_uid) << path;
    EXPECT_EQ(parsed.systemd_unit, expected.systemd_unit) << path;
  }
}

const std::string kId = "3c914ab7e8a8f1a0d3b2c4e5f60718293a4b5c6d7e8f90123456789abcdef012";
const std::string kOuter = "aa00bb11cc22dd33ee44ff5566778899aabbccddeeff00112233445566778899";
const std::string kPod = "8f3f9c1e-2d4b-4a6c-9e8f-0a1b2c3d4e5f";

TEST(CgroupPath, Docker) {
  Check({
      // ctrsploit/ctrsploit#280
      {"/docker/2403ccfe427f1dc7b6120dccb9ac58c2f8456950380d587a9f33ea7f00dd303d",
       {"2403ccfe427f1dc7b6120dccb9ac58c2f8456950380d587a9f33ea7f00dd303d", "docker"}},
      // neuvector/neuvector: share/system/cgroup_test.go, CentOS and Debian
      {"/system.slice/docker-9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d.scope",
       {"9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d", "docker"}},
      {"/4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970",
       {"4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970"}},
      // kubernetes/kubernetes#12789: a daemon under /system
      {"/system/system.slice/docker-769f3fa6252ef3475777076187bc45e0a2875a42adb1c802e8fa114d75767864.scope",
       {"769f3fa6252ef3475777076187bc45e0a2875a42adb1c802e8fa114d75767864", "docker"}},
      {"/docker/" + kId + "/init.scope", {kId, "docker"}},                  // systemd as pid 1
      {"/docker/" + kId + "/system.slice/nginx.service", {kId, "docker"}},  // a unit in the container
      {"/actions_job/" + kId, {kId}},                                       // --cgroup-parent of GitHub's runners
      // rootless, systemd driver
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + kId + ".scope", {kId, "docker"}},
      {"/system.slice:docker:" + kId, {kId, "docker"}},  // systemd's notation, taken literally by cgroupfs's driver
      {"/docker/" + kId + " (deleted)", {kId, "docker"}},
      // cryptnono/cryptnono#47: steps of a build have no container id
      {"/docker/buildkit/t4967jvf8rbufklrhkicskyes", {}},
      {"/docker/" + kOuter + "/buildkit/t4967jvf8rbufklrhkicskyes", {kOuter, "docker"}},  // buildkitd in a container
      {"/system.slice/docker.service", {"", "", "", "docker.service"}},
      {"/system.slice/containerd.service", {"", "", "", "containerd.service"}},
  });
}

TEST(CgroupPath, KubernetesUnderTheCgroupfsDriver) {
  Check({
      // kinvolk/traceloop#34
      {"/kubepods/besteffort/pod91a8fc3a-0ecf-48b4-81bf-78a7275d348c/"
       "f75aff467357c5d0ddd47cb7ad87ed38746e018992586ff66198a5c11218f634",
       {"f75aff467357c5d0ddd47cb7ad87ed38746e018992586ff66198a5c11218f634", "",
        "91a8fc3a-0ecf-48b4-81bf-78a7275d348c"}},
      // iovisor/kubectl-trace#207
      {"/kubepods/burstable/pod31dd0274-bb43-4975-bdbc-7e10047a23f8/"
       "851c75dad6ad8ce6a5d9b9129a4eb1645f7c6e5ba8406b12d50377b665737072",
       {"851c75dad6ad8ce6a5d9b9129a4eb1645f7c6e5ba8406b12d50377b665737072", "",
        "31dd0274-bb43-4975-bdbc-7e10047a23f8"}},
      // moby/moby#34584: a uid of Kubernetes 1.7
      {"/kubepods/besteffort/pod9a18ffb8-8513-11e7-b26e-7e29fbe2a5a3/"
       "d28e0087cf8f3f0429f755d60b0de415b20fcf76736ded7bab6e30e7b739ee36",
       {"d28e0087cf8f3f0429f755d60b0de415b20fcf76736ded7bab6e30e7b739ee36", "",
        "9a18ffb8-8513-11e7-b26e-7e29fbe2a5a3"}},
      // dajudge/kindcontainer#341: k3s under podman
      {"/kubepods/besteffort/pod85af8291-287b-44b0-897e-c4e6a9c8512b/"
       "19e5ed27c5ab22ca59b11ebe481145f03325b330ab94dc2b55b7cec3c5cc35dd",
       {"19e5ed27c5ab22ca59b11ebe481145f03325b330ab94dc2b55b7cec3c5cc35dd", "",
        "85af8291-287b-44b0-897e-c4e6a9c8512b"}},
      // rancher/os#2967: RKE, where the kubelet is a container
      {"/docker/8ec3e6062e1825067fddaa64bfb839cb47579b4bfe49c4dd9d486ff81c35a479/kubepods/besteffort/"
       "pod7e241a28-b013-481e-9e00-cbe6f00b5eaf/6b5583d73d20fa6da209e4d628a0c27395815f6613cb0a2c7e0e5b64507b210c",
       {"6b5583d73d20fa6da209e4d628a0c27395815f6613cb0a2c7e0e5b64507b210c", "",
        "7e241a28-b013-481e-9e00-cbe6f00b5eaf"}},
      {"/kubepods/pod" + kPod + "/" + kId, {kId, "", kPod}},                       // guaranteed
      {"/kubepods/burstable/pod" + kPod + "/crio-" + kId, {kId, "cri-o", kPod}},   // cri-o/cri-o#812
      {"/kubepods/burstable/pod" + kPod + "/crio-conmon-" + kId, {"", "", kPod}},  // in the pod, but in no container
      {"/kubepods/burstable/pod" + kPod + "/kata_" + kId, {kId, "", kPod}},
      {"/k8s.io/" + kId, {kId, "containerd"}},                 // without a cgroup parent
      {"/kubepods/burstable/pod" + kPod, {"", "", kPod}},      // the pod without a container
      {"/kubepods/burstable/pod1-2/" + kId, {kId}},            // not a uid
      {"/kubepods/burstable/pod" + kPod + "0/" + kId, {kId}},  // one digit too many
      {"/kubepods/burstable/podruntime/kubelet", {}},          // containerd/containerd#3133
      {"/kubepods/burstable/pod" + kPod + "/docker/X/sub", {"", "", kPod}},
  });
}

TEST(CgroupPath, KubernetesUnderTheSystemdDriver) {
  Check({
      // kinvolk/traceloop#34
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod5759a1ae_36ca_48a8_b20a_b0b5c8a90fb8.slice/"
       "docker-c8b38413c88eefe063b8cd3f01c16be5e3bda9693a19a68a88807baca9feb937.scope",
       {"c8b38413c88eefe063b8cd3f01c16be5e3bda9693a19a68a88807baca9feb937", "docker",
        "5759a1ae-36ca-48a8-b20a-b0b5c8a90fb8"}},
      // iovisor/kubectl-trace#207
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod40934a46_d409_4f4a_bb8b_1ec0b0436320.slice/"
       "cri-containerd-afc114c69e71f18166abd63715398d7daa763c69a6454f71157272ab0bdca783.scope",
       {"afc114c69e71f18166abd63715398d7daa763c69a6454f71157272ab0bdca783", "containerd",
        "40934a46-d409-4f4a-bb8b-1ec0b0436320"}},
      // tkestack/vcuda-controller#19: guaranteed
      {"/kubepods.slice/kubepods-pod019c1fe8_0d92_4aa0_b61c_4df58bdde71c.slice/"
       "cri-containerd-9e073649debeec6d511391c9ec7627ee67ce3a3fb508b0fa0437a97f8e58ba98.scope",
       {"9e073649debeec6d511391c9ec7627ee67ce3a3fb508b0fa0437a97f8e58ba98", "containerd",
        "019c1fe8-0d92-4aa0-b61c-4df58bdde71c"}},
      // iovisor/kubectl-trace#174
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod30cea2cf_1b80_4807_abad_d81453e199c5.slice/"
       "crio-a8077b08a56c0c6e33d6716557d882ac940cb09475c50372e22e84c40d0733f2.scope",
       {"a8077b08a56c0c6e33d6716557d882ac940cb09475c50372e22e84c40d0733f2", "cri-o",
        "30cea2cf-1b80-4807-abad-d81453e199c5"}},
      // opencontainers/runc#4620
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda5c1f8d5_1919_434d_add7_4afaafdaef89.slice/"
       "crio-5eed917563583925ffdbd40a64efb2aaffe58638e57add8becaf460fe74f5b1c.scope",
       {"5eed917563583925ffdbd40a64efb2aaffe58638e57add8becaf460fe74f5b1c", "cri-o",
        "a5c1f8d5-1919-434d-add7-4afaafdaef89"}},
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod207aaad1_659f_4db8_88e0_46e0cdcc3004.slice/"
       "crio-conmon-32da98c8522068be05a7510a3eddb09cad6ed2f03286180d0e931d0d0b6224a6.scope",
       {"", "", "207aaad1-659f-4db8-88e0-46e0cdcc3004"}},
      // containerd/nri#227: OpenShift, a pod's sandbox
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod35550f44_f691_427e_b57d_ab6127d2cb65.slice/"
       "crio-468f848e2ebec7203ed55748d08337851af589ac42eb551c572446a5c68fe631",
       {"468f848e2ebec7203ed55748d08337851af589ac42eb551c572446a5c68fe631", "cri-o",
        "35550f44-f691-427e-b57d-ab6127d2cb65"}},
      // openshift/microshift#697: MicroShift, and its monitors next to the pods
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podc8bad552_5c99_4d4f_b71c_c426c0cde014.slice/"
       "crio-15b6e0c6490cad17fcf69eb837794349b4df96f84ba96c6be9828fe281c055a9.scope",
       {"15b6e0c6490cad17fcf69eb837794349b4df96f84ba96c6be9828fe281c055a9", "cri-o",
        "c8bad552-5c99-4d4f-b71c-c426c0cde014"}},
      {"/system.slice/crio-conmon-e0c85fe7644a858988d9687c2e0736a7d31922740d0f3e001c6b2e0aa7e5f528.scope", {}},
      // openshift/origin#16246: OpenShift 3
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod86daabc9_9486_11e7_a2b8_42010a800005.slice/"
       "docker-ca877fc648dcf466185be3e66b95e774f4589f866620920615c40c12bfe86f2a.scope",
       {"ca877fc648dcf466185be3e66b95e774f4589f866620920615c40c12bfe86f2a", "docker",
        "86daabc9-9486-11e7-a2b8-42010a800005"}},
      // kontena/pharos-cluster#440: a folder that the container made
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod9692aa0e_748e_11e8_8dfa_76d458035df6.slice/"
       "docker-abddff03dfd7710c79a750ce3e730365cbb2c8247a974170c1062683bc3e9152.scope/kube-proxy",
       {"abddff03dfd7710c79a750ce3e730365cbb2c8247a974170c1062683bc3e9152", "docker",
        "9692aa0e-748e-11e8-8dfa-76d458035df6"}},
      // cryptnono/cryptnono#47: k3s in Colima
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod7fda01c4_0ece_403d_88b4_c371d66d132a.slice/"
       "cri-containerd-e58a24d4a722c99712cff74ef69d93311089584eb32617b3890e0dcb996133f1.scope",
       {"e58a24d4a722c99712cff74ef69d93311089584eb32617b3890e0dcb996133f1", "containerd",
        "7fda01c4-0ece-403d-88b4-c371d66d132a"}},
      // netdata/netdata#4868: static pods
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod187bff14cccb94f179e943eacce55bb3.slice/"
       "cri-containerd-c203a2647ef1ad78e990157c50331f3b6ef0b03336cf08535d6bf7faa5421415.scope",
       {"c203a2647ef1ad78e990157c50331f3b6ef0b03336cf08535d6bf7faa5421415", "containerd",
        "187bff14cccb94f179e943eacce55bb3"}},
      // kubernetes/kubernetes#106515: systemd's notation with a driver that turns it into folders; a static pod
      {"/system.slice/containerd.service/kubepods-burstable-pod36b6d6be73b1065af369b3985edafa09.slice:cri-containerd:"
       "79fedb3bd23ca77c9d9ccb41909038316f713df22b54b7d942b71d3812e7c74e",
       {"79fedb3bd23ca77c9d9ccb41909038316f713df22b54b7d942b71d3812e7c74e", "containerd",
        "36b6d6be73b1065af369b3985edafa09"}},
      // open-telemetry/opentelemetry-java#4507
      {"/kubepods-besteffort-pod0125ec2f_b64a_4868_8f5b_94b56cbab864.slice:cri-containerd:"
       "ee4b20e90ac7f42a10bd004d05646b13d8ab5e2c5e7cbc01abf8006bac016459",
       {"ee4b20e90ac7f42a10bd004d05646b13d8ab5e2c5e7cbc01abf8006bac016459", "containerd",
        "0125ec2f-b64a-4868-8f5b-94b56cbab864"}},
      // elastic/apm-agent-nodejs#3550
      {"/system.slice/containerd.service/kubepods-burstable-podff49d0be_16b7_4a49_bb9e_8ec1f1f4e27f.slice:"
       "cri-containerd:0f99ad5f45163ed14ab8eaf92ed34bb4a631d007f8755a7d79be614bcb0df0ef",
       {"0f99ad5f45163ed14ab8eaf92ed34bb4a631d007f8755a7d79be614bcb0df0ef", "containerd",
        "ff49d0be-16b7-4a49-bb9e-8ec1f1f4e27f"}},
      {"/kubepods.slice/kubepods-pod8f3f9c1e_2d4b_4a6c_9e8f_0a1b2c3d4e5f.slice/crio-" + kId + ".scope/container",
       {kId, "cri-o", kPod}},
      {"/kubepods.slice/kubepods-pod8f3f9c1e_2d4b_4a6c_9e8f_0a1b2c3d4e5f.slice", {"", "", kPod}},
      {"/system.slice/kubelet.service", {"", "", "", "kubelet.service"}},
      {"/x.slice/x-pod8f3f9c1e_2d4b_4a6c_9e8f_0a1b2c3d4e5f.slice", {}},  // a slice that is not Kubernetes's
      {"/kubepods.slice/kubepods-pod8f3f9c1e_2d4b-4a6c_9e8f_0a1b2c3d4e5f.slice", {}},
  });
}

TEST(CgroupPath, InnermostCounts) {
  Check({
      {"/docker/" + kOuter + "/docker/" + kId, {kId, "docker"}},  // Docker in Docker
      // containerd/nri#227: kind, as seen by its node and by the host
      {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
       "kubelet-kubepods-besteffort-pod1e597579_417e_482f_bf65_5fe170c3aebd.slice/"
       "cri-containerd-a09bc17f5aa29b0dbdec9ede5f46cf1396d2405917ab02e6f1eb1019f388396e.scope",
       {"a09bc17f5aa29b0dbdec9ede5f46cf1396d2405917ab02e6f1eb1019f388396e", "containerd",
        "1e597579-417e-482f-bf65-5fe170c3aebd"}},
      {"/system.slice/docker-" + kOuter +
           ".scope/kubelet.slice/kubelet-kubepods.slice/"
           "kubelet-kubepods-pod8f3f9c1e_2d4b_4a6c_9e8f_0a1b2c3d4e5f.slice/cri-containerd-" +
           kId + ".scope",
       {kId, "containerd", kPod}},
      // kind, cgroupfs's driver
      {"/docker/" + kOuter + "/kubelet/kubepods/besteffort/pod" + kPod + "/" + kId, {kId, "", kPod}},
      // kind's node itself
      {"/docker/" + kOuter + "/kubelet.slice/kubelet.service", {kOuter, "docker"}},
      // kubernetes/minikube#11280: minikube with CRI-O in Docker
      {"/docker/d6701ec289c56e4391acb11d07474b3139466857a305490575508a8b7a9fcf22/kubepods.slice/"
       "kubepods-besteffort.slice/kubepods-besteffort-pod2ca4a155_3599_498d_bb9d_4446693fa3ea.slice/"
       "crio-358607a37e7ada357032e7f5729c9ae6a3efdb7962acbcbe47ff6a3c5506cb1c.scope",
       {"358607a37e7ada357032e7f5729c9ae6a3efdb7962acbcbe47ff6a3c5506cb1c", "cri-o",
        "2ca4a155-3599-498d-bb9d-4446693fa3ea"}},
      // minikube in podman
      {"/machine.slice/libpod-" + kOuter + ".scope/container/kubepods/burstable/pod" + kPod + "/" + kId,
       {kId, "", kPod}},
      // Docker in a pod, and a cluster in a pod
      {"/kubepods/burstable/pod" + kPod + "/" + kOuter + "/docker/" + kId, {kId, "docker", kPod}},
      {"/kubepods/burstable/pod91a8fc3a-0ecf-48b4-81bf-78a7275d348c/" + kOuter + "/docker/" + kOuter +
           "/kubelet/kubepods/pod" + kPod + "/" + kId,
       {kId, "", kPod}},
      {"/docker/" + kOuter + "/machine.slice/libpod-conmon-" + kId + ".scope", {kOuter, "docker"}},
  });
}

TEST(CgroupPath, RelativeToAnotherCgroup) {
  Check({
      // neuvector/neuvector: share/system/cgroup_test.go
      {"/../../kubepods-besteffort-podfd698699_eabf_4c23_92ef_cf0bbdb78261.slice/"
       "docker-2cc65c162ca1388b6b8d5ccfb701d22fc96675ccf8b2f1590c490c2c4039547f.scope",
       {"2cc65c162ca1388b6b8d5ccfb701d22fc96675ccf8b2f1590c490c2c4039547f", "docker",
        "fd698699-eabf-4c23-92ef-cf0bbdb78261"}},
      {"/../../kubepods-besteffort-pod88f6f4e3_59c0_4ce8_9ecf_391c8b5a60ad.slice/"
       "docker-656959d9ee87a0b131c601ce9d9f8f76b1dda60e8608c503b5979d849cbdc714.scope",
       {"656959d9ee87a0b131c601ce9d9f8f76b1dda60e8608c503b5979d849cbdc714", "docker",
        "88f6f4e3-59c0-4ce8-9ecf-391c8b5a60ad"}},
      {"/../cri-containerd-" + kId + ".scope", {kId, "containerd"}},
      {"/../../pod" + kPod + "/" + kId, {kId, "", kPod}},
      {"/../../../system.slice/ssh.service", {"", "", "", "ssh.service"}},
      {"/../" + kId, {kId}},
  });
}

TEST(CgroupPath, Podman) {
  Check({
      {"/machine.slice/libpod-" + kId + ".scope", {kId, "podman"}},
      {"/machine.slice/libpod-" + kId + ".scope/container", {kId, "podman"}},
      {"/libpod_parent/libpod-" + kId, {kId, "podman"}},
      // rootless
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope/container", {kId, "podman"}},
      {"/machine.slice/machine-libpod_pod_" + kOuter + ".slice/libpod-" + kId + ".scope", {kId, "podman"}},
      // quadlets: --cgroups=split, of root and of a user; the monitor belongs to the unit
      {"/system.slice/nginx.service/libpod-payload-9687bac58d5c4d1606aa46af33d1a21c1d1652e0ac9fb3fc0fc86e3495f42869",
       {"9687bac58d5c4d1606aa46af33d1a21c1d1652e0ac9fb3fc0fc86e3495f42869", "podman"}},
      {"/user.slice/user-3020.slice/user@3020.service/app.slice/pihole.service/"
       "libpod-payload-8dfe50a6231edd323d9893fc36f0c9a19e5a82ce23485c449d9fc1b150e5622d",
       {"8dfe50a6231edd323d9893fc36f0c9a19e5a82ce23485c449d9fc1b150e5622d", "podman"}},
      {"/user.slice/user-3020.slice/user@3020.service/app.slice/pihole.service/runtime",
       {"", "", "", "pihole.service"}},
      {"/machine.slice/libpod-conmon-" + kId + ".scope", {}},
      {"/libpod_parent/conmon", {}},
      // containers/crun#376
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/podman-6696.scope", {}},
  });
}

TEST(CgroupPath, OtherRuntimes) {
  const std::string fargate = "34dc0b5e626f2c5c4c5170e34b10e765-1234567890";
  Check({
      // ECS: netdata/netdata#4981, aws/amazon-ecs-agent#4077 and #3127, Fargate
      {"/ecs/a52246f2-daa7-47b4-9e84-0043331e1da0/38dcd24c1a7ac4b0401a1ed29ef79b0c030631df33322db9b092687c0bfd0a38",
       {"38dcd24c1a7ac4b0401a1ed29ef79b0c030631df33322db9b092687c0bfd0a38", "docker"}},
      {"/ecs/bf1ddbfbbc8f45c9b1ac4f779368741e/" + kId, {kId, "docker"}},
      {"/ecstasks.slice/ecstasks-bf1ddbfbbc8f45c9b1ac4f779368741e.slice/docker-" + kId + ".scope", {kId, "docker"}},
      {"/ecs/34dc0b5e626f2c5c4c5170e34b10e765/" + fargate, {fargate, "ecs"}},
      // Garden: Pivotal Cloud Foundry
      {"/garden/6f265890-5165-7fab-6b52-18d1", {"6f265890-5165-7fab-6b52-18d1", "garden"}},
      {"/system.slice/garden.service/garden/good/6f265890-5165-7fab-6b52-18d1",
       {"6f265890-5165-7fab-6b52-18d1", "garden"}},
      // ctr and nerdctl
      {"/default/" + kId, {kId, "containerd"}},
      {"/system.slice/nerdctl-" + kId + ".scope", {kId, "containerd"}},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/nerdctl-" + kId + ".scope", {kId, "containerd"}},
      // Nomad: Roblox/nomad-driver-containerd#133; the task is not a container, its scope has the name of an allocation
      {"/nomad.slice/share.slice/2b1f5c9a-8f4d-8f4b-9b0e-2f6f3c8f8a11.sleep3.scope", {}},
      {"/docker/" + kId, {kId, "docker"}},  // Nomad's Docker driver
      // LXC, Incus: lxc/lxc#2782, lxc/incus#3684; containers by name, with units of their own
      {"/lxc/web-1", {}},
      {"/lxc.payload.web-1/init.scope", {}},
      {"/lxc.payload.gha-fleet_worker/system.slice/actions.runner.one-job.service",
       {"", "", "", "actions.runner.one-job.service"}},
      {"/lxc.monitor.web-1", {}},
      // systemd-nspawn: systemd/systemd#18104
      {"/machine.slice/machine-web.scope/payload", {"", "", "", "machine-web.scope"}},
      {"/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service", {"", "", "", "nginx.service"}},
      {"/machine.slice/systemd-nspawn@web.service/supervisor", {"", "", "", "systemd-nspawn@web.service"}},
      // libvirt
      {"/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/libvirt/emulator",
       {"", "", "", "machine-qemu\\x2d3\\x2dweb.scope"}},
  });
}

TEST(CgroupPath, Systemd) {
  Check({
      {"/system.slice/ssh.service", {"", "", "", "ssh.service"}},
      {"/system.slice/systemd-udevd.service/udev", {"", "", "", "systemd-udevd.service"}},
      {"/system.slice/system-postgresql.slice/postgresql@15-main.service", {"", "", "", "postgresql@15-main.service"}},
      {"/system.slice/system-worker.slice/worker@3.service", {"", "", "", "worker@3.service"}},
      {"/system.slice/run-u12.service", {}},
      {"/system.slice/run-p123-i456.scope", {}},
      {"/system.slice/run-r0f1e2d3c4b5a69788796a5b4c3d2e1f0.service", {}},
      {"/system.slice/run-parts.service", {"", "", "", "run-parts.service"}},
      {"/system.slice/run-updates.service", {"", "", "", "run-updates.service"}},
      {"/system.slice/run-proxy-internal.service", {"", "", "", "run-proxy-internal.service"}},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service", {"", "", "", "pipewire.service"}},
      {"/user.slice/user-1000.slice/user@1000.service", {"", "", "", "user@1000.service"}},
      {"/user.slice/user-1000.slice/user@1000.service/init.scope", {}},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-2114.scope", {}},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox@0f1e2d3c4b5a69788796a5b4c3d2e1f0.service",
       {}},
      // podman-container-tools/podman#20910: a terminal's window
      {"/user.slice/user-10000.slice/user@10000.service/app.slice/app-org.gnome.Terminal.slice/"
       "vte-spawn-f22f14d2-3d44-4304-9879-3fdd0df7b08e.scope",
       {}},
      {"/user.slice/user-1002.slice/session-48.scope", {}},
      {"/init.scope", {}},
      {"/system.slice", {}},
      {"/system.slice/var-lib-docker-containers-" + kId + "-mounts-shm.mount", {}},
      {"/system.slice/.service", {}},
      {"/system.slice/.scope", {}},
  });
}

TEST(CgroupPath, ReturnsNothingForInvalidPaths) {
  Check({
      {"", {}},
      {"/", {}},
      {"//", {}},
      {"/docker/" + kId.substr(1), {}},                 // 63 digits
      {"/docker/" + kId + "0", {}},                     // 65
      {"/docker/X" + kId.substr(1), {}},                //
      {"/docker/" + std::string(64, 'A'), {}},          // ids are lower-case
      {"/docker/-" + kId + ".scope", {}},               //
      {"/docker/docker+" + kId + ".scope", {}},         //
      {"/docker/" + kId + std::string(5000, '/'), {}},  // longer than any path
      {"/x/8f3f9c1e-2d4b-4a6c-9e8f-0a1b2c3d4e5f", {}},
      {std::string("/docker/\0\x01", 10), {}},
  });
}

}  // namespace
}  // namespace tributary
