#include "base/capabilities.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "base/child_process_testing.h"
#include "base/sandbox.h"
#include "base/socket_message.h"

namespace tributary {
namespace {

using testing::Fork;

constexpr CapabilitySet kSome = {CAP_SYS_PTRACE, CAP_SYSLOG};

// The lines of /proc/self/status that KeepOnlyCapabilities changes.
std::map<std::string, uint64_t> OwnSets() {
  std::map<std::string, uint64_t> sets;
  std::ifstream file("/proc/self/status");
  for (std::string name, value; file >> name && std::getline(file, value);) {
    if (name.starts_with("Cap") || name == "NoNewPrivs:") sets[name] = std::stoull(value, nullptr, 16);
  }
  return sets;
}

// Calls `live` in another process, and returns the code that `live` reports. Capabilities that the test's own process
// gave up would be lost for other tests.
int RunElsewhere(const std::function<int(int)>& live) {
  auto child = Fork(live);
  if (!child.ok()) return -1;
  char code = 0;
  return ReadAll(child->socket(), &code, 1, 10'000) ? code : -2;
}

int Report(int socket, char code) { return WriteAll(socket, &code, 1, -1) ? 0 : 1; }

TEST(Capabilities, HaveNames) {
  EXPECT_EQ(CapabilityName(CAP_BPF), "CAP_BPF");
  EXPECT_EQ(CapabilityName(CAP_SYS_TIME), "capability 25");
  EXPECT_EQ(CapabilityNames(kSome), "CAP_SYS_PTRACE,CAP_SYSLOG");
  EXPECT_EQ(CapabilityNames({}), "none");
}

TEST(Capabilities, KeepsOnlyTheNamedCapabilities) {
  const CapabilitySet before = EffectiveCapabilities();
  const int code = RunElsewhere([](int socket) {
    const bool may_bound = EffectiveCapabilities().Has(CAP_SETPCAP);
    const uint64_t expected = EffectiveCapabilities().bits() & kSome.bits();
    if (!KeepOnlyCapabilities(kSome).ok()) return Report(socket, 2);
    auto sets = OwnSets();
    if (sets["CapEff:"] != expected || sets["CapPrm:"] != expected) return Report(socket, 3);
    if (sets["CapInh:"] != 0 || sets["CapAmb:"] != 0 || sets["NoNewPrivs:"] != 1) return Report(socket, 4);
    if (may_bound && sets["CapBnd:"] != 0) return Report(socket, 5);
    // Again, with fewer: a process of a program that has given up some capabilities gives up the rest.
    if (!DropAllCapabilities().ok()) return Report(socket, 6);
    return Report(socket, EffectiveCapabilities() == CapabilitySet() ? 1 : 7);
  });
  EXPECT_EQ(code, 1);
  EXPECT_EQ(EffectiveCapabilities(), before) << "the test's own process";
}

TEST(Capabilities, SandboxHasNone) {
  auto child = Fork([](int socket) {
    if (!KeepOnlyCapabilities(kSome).ok()) return 2;
    if (!EnterSandbox({.memory_bytes_max = 1 << 30}).ok()) return 3;
    Report(socket, 1);
    char byte = 0;
    return ReadAll(socket, &byte, 1, -1) ? 4 : 0;
  });
  ASSERT_TRUE(child.ok());
  char code = 0;
  ASSERT_TRUE(ReadAll(child->socket(), &code, 1, 10'000));
  ASSERT_EQ(code, 1);
  std::ifstream file("/proc/" + std::to_string(child->pid()) + "/status");
  int seen = 0;
  for (std::string name, value; file >> name && std::getline(file, value);) {
    if (name == "CapEff:" || name == "CapPrm:" || name == "CapInh:" || name == "CapAmb:") {
      EXPECT_EQ(std::stoull(value, nullptr, 16), 0u) << name;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 4);
}

}  // namespace
}  // namespace tributary
