#include "kernel-collector/probes/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>

#include <cerrno>

#include "base/status.h"
#include "kernel-collector/probes/cgroup_v1.h"
#include "kernel-collector/probes/cpu_list.h"
#include "kernel-collector/probes/standstill.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Machine GoodMachine() {
  return {.kernel_release = "6.1.0-18-amd64", .capabilities = {CAP_BPF, CAP_PERFMON}, .has_btf = true};
}

TEST(Preflight, AcceptsSuitableMachines) {
  EXPECT_TRUE(CheckMachine(GoodMachine()).ok());
  for (const char* release : {"5.10.0", "5.10.223-foo", "6.18.44", "7.2.13+deb14-cloud-amd64", "unreadable"}) {
    Machine machine = GoodMachine();
    machine.kernel_release = release;
    EXPECT_TRUE(CheckMachine(machine).ok()) << release;
  }
  Machine root = GoodMachine();
  root.capabilities = {CAP_SYS_ADMIN};
  EXPECT_TRUE(CheckMachine(root).ok());
}

TEST(Preflight, RefusesOldKernels) {
  for (const char* release : {"5.9.16", "4.19.0-27-amd64", "3.10.0-1160.el7"}) {
    Machine machine = GoodMachine();
    machine.kernel_release = release;
    absl::Status status = CheckMachine(machine);
    EXPECT_TRUE(absl::IsUnimplemented(status)) << release;
    EXPECT_THAT(Message(status), HasSubstr("5.10 or later"));
  }
}

TEST(Preflight, KnowsKernelsThatInterruptTracepoints) {
  for (const auto& [release, interrupts] :
       {std::pair("5.10.223", false), std::pair("6.19.2-foo", false), std::pair("7.0.1", true),
        std::pair("7.2.13+deb14-cloud-amd64", true), std::pair("10.1", true), std::pair("unreadable", false)}) {
    EXPECT_EQ(Machine{.kernel_release = release}.InterruptsTracepoints(), interrupts) << release;
  }
}

TEST(Preflight, TellsWhetherMapsCountForTheMemoryLimit) {
  for (const auto& [release, charges] : {std::pair("5.10.223", false), std::pair("5.11.0", true),
                                         std::pair("6.12.1-foo", true), std::pair("unreadable", false)}) {
    EXPECT_EQ(Machine{.kernel_release = release}.ChargesMapsToCgroup(), charges) << release;
  }
}

TEST(Preflight, WalksRuntimesExceptOnOldArm64) {
  const auto supports = [](const char* architecture, const char* release) {
    return Machine{.kernel_release = release, .architecture = architecture}.SupportsRuntimes();
  };
  EXPECT_TRUE(supports("x86_64", "5.10.0-33-amd64"));
  EXPECT_FALSE(supports("aarch64", "5.10.0-33-arm64"));
  EXPECT_FALSE(supports("aarch64", "5.19.17"));
  EXPECT_TRUE(supports("aarch64", "6.0.0"));
  EXPECT_TRUE(supports("aarch64", "6.12.107+deb13-arm64"));
  EXPECT_TRUE(supports("aarch64", "unknown"));
}

TEST(Preflight, NamesMissingCapabilities) {
  Machine machine = GoodMachine();
  machine.capabilities = {CAP_BPF};
  EXPECT_TRUE(absl::IsPermissionDenied(CheckMachine(machine)));
  EXPECT_THAT(Message(CheckMachine(machine)), testing::StartsWith("CAP_PERFMON missing"));
  machine.capabilities = {CAP_PERFMON};
  EXPECT_THAT(Message(CheckMachine(machine)), testing::StartsWith("CAP_BPF missing"));
  machine.capabilities = {};
  EXPECT_THAT(Message(CheckMachine(machine)), testing::StartsWith("CAP_BPF and CAP_PERFMON missing"));
}

TEST(Preflight, NamesMissingBtfAndPrivatePidNamespace) {
  Machine machine = GoodMachine();
  machine.has_btf = false;
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckMachine(machine)));
  EXPECT_THAT(Message(CheckMachine(machine)), HasSubstr("CONFIG_DEBUG_INFO_BTF"));
  machine = GoodMachine();
  machine.initial_pid_namespace = false;
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckMachine(machine)));
  EXPECT_THAT(Message(CheckMachine(machine)), HasSubstr("hostPID"));
}

TEST(Preflight, ExplainsRefusedSystemCalls) {
  EXPECT_TRUE(absl::IsPermissionDenied(ExplainPerfEventError(EACCES, 3)));
  EXPECT_THAT(Message(ExplainPerfEventError(EACCES, 3)), HasSubstr("perf_event_paranoid=3"));
  EXPECT_THAT(Message(ExplainPerfEventError(EACCES, 3)), HasSubstr("set the sysctl to 2, or grant CAP_SYS_ADMIN"));
  EXPECT_THAT(Message(ExplainPerfEventError(EACCES, 2)), HasSubstr("grant CAP_PERFMON"));
  EXPECT_TRUE(absl::IsUnimplemented(ExplainPerfEventError(ENOSYS, 0)));
  EXPECT_THAT(Message(ExplainPerfEventError(ENOSYS, 0)), HasSubstr("seccomp"));
  EXPECT_TRUE(absl::IsInvalidArgument(ExplainPerfEventError(EINVAL, 0)));
  EXPECT_TRUE(absl::IsPermissionDenied(ExplainBpfLoadError(EPERM, "")));
  EXPECT_TRUE(absl::IsUnimplemented(ExplainBpfLoadError(ENOSYS, "")));
  const absl::Status no_btf = ExplainBpfLoadError(ESRCH, "libbpf: failed to find valid kernel BTF\nlibbpf: more\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(no_btf));
  EXPECT_THAT(Message(no_btf), HasSubstr("CONFIG_DEBUG_INFO_BTF=y"));
}

TEST(Preflight, QuotesTheEndOfTheVerifiersLog) {
  EXPECT_EQ(LastComplaint(""), "libbpf gave no reason");
  std::string log =
      "libbpf: prog 'p': BPF program load failed: Permission denied\n"
      "libbpf: prog 'p': -- BEGIN PROG LOAD LOG --\n"
      "0: R1=ctx(off=0,imm=0) R10=fp0\n"
      "12: (79) r1 = *(u64 *)(r0 +0)\n"
      "R0 invalid mem access 'map_value_or_null'\n"
      "verification time 60 usec\n"
      "stack depth 8\n"
      "processed 13 insns (limit 1000000)\n"
      "-- END PROG LOAD LOG --\n"
      "libbpf: failed to load program 'p'\n";
  EXPECT_EQ(LastComplaint(log),
            "0: R1=ctx(off=0,imm=0) R10=fp0 | 12: (79) r1 = *(u64 *)(r0 +0) | "
            "R0 invalid mem access 'map_value_or_null'");
  absl::Status status = ExplainBpfLoadError(EACCES, log);
  EXPECT_THAT(Message(status), HasSubstr("EACCES"));
  EXPECT_EQ(Message(status).find('\n'), std::string::npos);
  EXPECT_LT(LastComplaint(std::string(100'000, 'x')).size(), 300u);
}

TEST(CpuList, ReadsRanges) {
  EXPECT_THAT(*ParseCpuList("0\n"), ElementsAre(0));
  EXPECT_THAT(*ParseCpuList("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(*ParseCpuList("5,1-2,2"), ElementsAre(1, 2, 5));
}

TEST(CpuList, RefusesInvalidLists) {
  for (const char* text : {"", "\n", "a", "1-", "-1", "3-1", "1,,2", "1-2-3", "99999", "0-99999", "4294967296", " 1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseCpuList(text).status())) << text;
  }
}

TEST(Standstill, DistinguishesStoppedFromLateClocks) {
  constexpr int64_t kSecond = kNsPerSecond;
  Standstill event(MonotonicNs{10 * kSecond}, 0);
  EXPECT_FALSE(event.Observe(MonotonicNs{10 * kSecond}, 0)) << "no time passed";
  EXPECT_FALSE(event.Observe(MonotonicNs{10 * kSecond + 5 * kNsPerMs}, 0)) << "an idle CPU's clock may be late";
  EXPECT_FALSE(event.Observe(MonotonicNs{15 * kSecond}, 5 * kSecond));
  EXPECT_FALSE(event.Observe(MonotonicNs{1015 * kSecond}, 1004 * kSecond)) << "clocks drift";
  EXPECT_TRUE(event.Observe(MonotonicNs{1020 * kSecond}, 1008 * kSecond)) << "stopped a second ago";
  EXPECT_TRUE(event.Observe(MonotonicNs{1025 * kSecond}, 1008 * kSecond));
}

TEST(CgroupV1, ChoosesAHierarchyThatRuntimesUse) {
  EXPECT_EQ(ChooseCgroupV1("0::/user.slice\n"), TRIB_CGROUP_V1_NONE);
  EXPECT_EQ(ChooseCgroupV1(""), TRIB_CGROUP_V1_NONE);
  EXPECT_EQ(ChooseCgroupV1("9:name=systemd:/\n8:pids:/\n4:memory:/a\n3:cpuset:/\n0::/\n"), TRIB_CGROUP_V1_MEMORY);
  EXPECT_EQ(ChooseCgroupV1("5:cpu,cpuacct:/a:memory:/b\n0::/\n"), TRIB_CGROUP_V1_CPU);
  EXPECT_EQ(ChooseCgroupV1("nonsense\n:::\n"), TRIB_CGROUP_V1_NONE);
}

}  // namespace
}  // namespace tributary
