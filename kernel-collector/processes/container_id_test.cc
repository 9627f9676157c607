#include "kernel-collector/processes/container_id.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

const std::string kId = "3c914ab7e8a8f1a0d3b2c4e5f60718293a4b5c6d7e8f90123456789abcdef012";
const std::string kOuter = "aa00bb11cc22dd33ee44ff5566778899aabbccddeeff00112233445566778899";
const std::string kPod = "8f3f9c1e_2d4b_4a6c_9e8f_0a1b2c3d4e5f";
const std::string kEcs = "d1f6c4a98b7e4e0f9a3b5c7d9e1f2a4b-1234567890";

struct Case {
  std::string path, id;
};

class ContainerId : public testing::TestWithParam<Case> {};

TEST_P(ContainerId, IsTheInnermostOfThePath) { EXPECT_EQ(ContainerIdFromCgroupPath(GetParam().path), GetParam().id); }

INSTANTIATE_TEST_SUITE_P(
    Docker, ContainerId,
    testing::Values(Case{"/docker/" + kId, kId},                                  //
                    Case{"/system.slice/docker-" + kId + ".scope", kId},          //
                    Case{"/docker/" + kId + "/init.scope", kId},                  // systemd as pid 1
                    Case{"/docker/" + kId + "/system.slice/nginx.service", kId},  //
                    Case{"/docker/" + kOuter + "/docker/" + kId, kId},            // Docker in Docker
                    Case{"/system.slice/docker-" + kOuter + ".scope/kubelet/kubepods/besteffort/pod1-2/" + kId, kId},
                    Case{"/actions_job/" + kId, kId},  // --cgroup-parent
                    Case{"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + kId + ".scope", kId}));

INSTANTIATE_TEST_SUITE_P(
    Kubernetes, ContainerId,
    testing::Values(
        Case{"/kubepods/burstable/pod8f3f9c1e-2d4b-4a6c-9e8f-0a1b2c3d4e5f/" + kId, kId},
        Case{"/kubepods/besteffort/pod8f3f9c1e-2d4b-4a6c-9e8f-0a1b2c3d4e5f/" + kId, kId},
        Case{"/kubepods/pod8f3f9c1e-2d4b-4a6c-9e8f-0a1b2c3d4e5f/" + kId, kId},
        Case{"/kubepods/burstable/pod8f3f9c1e-2d4b-4a6c-9e8f-0a1b2c3d4e5f/crio-" + kId, kId},
        Case{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kPod + ".slice/cri-containerd-" + kId +
                 ".scope",
             kId},
        Case{"/kubepods.slice/kubepods-pod" + kPod + ".slice/docker-" + kId + ".scope", kId},
        Case{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + kPod + ".slice/crio-" + kId +
                 ".scope",
             kId},
        Case{"/kubepods.slice/kubepods-pod" + kPod + ".slice/crio-" + kId + ".scope/container", kId},
        Case{"/system.slice/containerd.service/kubepods-burstable-pod" + kPod + ".slice:cri-containerd:" + kId, kId},
        Case{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + kPod + ".slice/cri-containerd-" + kId +
                 ".scope",
             kId},
        Case{"/kubepods.slice/kubepods-pod" + kPod + ".slice", ""},  // the pod, no container of it
        Case{"/kubepods.slice/kubepods-pod" + kPod + ".slice/crio-conmon-" + kId + ".scope", ""}));

INSTANTIATE_TEST_SUITE_P(
    Podman, ContainerId,
    testing::Values(Case{"/machine.slice/libpod-" + kId + ".scope", kId},            //
                    Case{"/machine.slice/libpod-" + kId + ".scope/container", kId},  //
                    Case{"/libpod_parent/libpod-" + kId, kId},                       //
                    Case{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope/container",
                         kId},
                    Case{"/machine.slice/libpod-conmon-" + kId + ".scope", ""},  //
                    Case{"/docker/" + kOuter + "/machine.slice/libpod-conmon-" + kId + ".scope", kOuter},
                    Case{"/libpod_parent/conmon", ""},  //
                    Case{"/machine.slice/machine-libpod_pod_" + kOuter + ".slice/libpod-" + kId + ".scope", kId}));

INSTANTIATE_TEST_SUITE_P(Others, ContainerId,
                         testing::Values(Case{"/ecs/d1f6c4a98b7e4e0f9a3b5c7d9e1f2a4b/" + kEcs, kEcs},    //
                                         Case{"/ecs/8f3f9c1e-2d4b-4a6c-9e8f-0a1b2c3d4e5f/" + kId, kId},  //
                                         Case{"/garden/6f265890-5165-7fab-6b52-18d1",
                                              "6f265890-5165-7fab-6b52-18d1"},  //
                                         Case{"/system.slice/garden.service/garden/good/6f265890-5165-7fab-6b52-18d1",
                                              "6f265890-5165-7fab-6b52-18d1"},
                                         Case{"/default/" + kId, kId},  // ctr and nerdctl under cgroupfs
                                         Case{"/system.slice/nerdctl-" + kId + ".scope", kId}));

INSTANTIATE_TEST_SUITE_P(None, ContainerId,
                         testing::Values(Case{"", ""}, Case{"/", ""}, Case{"//", ""}, Case{"/init.scope", ""},
                                         Case{"/system.slice/ssh.service", ""},
                                         Case{"/user.slice/user-0.slice/session-1.scope", ""},
                                         Case{"/docker/" + kId.substr(1), ""},          // 63 digits
                                         Case{"/docker/" + kId + "0", ""},              // 65
                                         Case{"/docker/X" + kId.substr(1), ""},         //
                                         Case{"/docker/" + std::string(64, 'A'), ""},   // ids are lower-case
                                         Case{"/docker/-" + kId + ".scope", ""},        //
                                         Case{"/docker/docker+" + kId + ".scope", ""},  //
                                         Case{"/lxc/web-1", ""},                        //
                                         Case{"/docker/buildkit/kwg2j5tqo8yb1m4l0z9x7v6c5", ""},
                                         Case{"/docker/" + kId + std::string(5000, '/'), ""},  // longer than any path
                                         Case{"/x/8f3f9c1e-2d4b-4a6c-9e8f-0a1b2c3d4e5f", ""}));

TEST(ProcCgroup, ReadsBothVersions) {
  CgroupPaths paths = ParseProcCgroup("9:name=systemd:/docker/a\n4:memory:/docker/a:b\n0::/unified x\n");
  EXPECT_EQ(paths.unified, "/unified x");
  EXPECT_EQ(paths.legacy, (std::vector<std::string>{"/docker/a", "/docker/a:b"}));
}

TEST(ProcCgroup, SkipsWhatIsNotALine) {
  CgroupPaths paths = ParseProcCgroup("\n0:\n0::\n0::relative\n::\n5:cpu\n0::/ok");
  EXPECT_EQ(paths.unified, "/ok");
  EXPECT_TRUE(paths.legacy.empty());
}

}  // namespace
}  // namespace tributary
