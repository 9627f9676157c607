#include "kernel-collector/runtimes/python/thread_state_access.h"

#include <gtest/gtest.h>

#include <string>

#include "elf/elf_format.h"

namespace tributary {
namespace {

using namespace std::literals;

TEST(ThreadStateAccess, DecodesX86) {
  const std::string load = "\x64\x48\x8b\x04\x25\xe8\xff\xff\xff"s;
  EXPECT_EQ(DecodeThreadStateAccess(kElfMachineX86_64, load + "\xc3"), -24);
  EXPECT_EQ(DecodeThreadStateAccess(kElfMachineX86_64, "\xf3\x0f\x1e\xfa" + load + "\xc3"), -24);
  EXPECT_EQ(DecodeThreadStateAccess(kElfMachineX86_64, "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5" + load + "\x5d\xc3"), -24);
  EXPECT_EQ(DecodeThreadStateAccess(kElfMachineX86_64, load), 0) << "cut off";
  EXPECT_EQ(DecodeThreadStateAccess(kElfMachineX86_64, load + "\x48"), 0) << "uses the value";
  // A library calls __tls_get_addr.
  EXPECT_EQ(DecodeThreadStateAccess(kElfMachineX86_64, "\x66\x48\x8d\x3d\x00\x00\x00\x00\x66\x66\x48\xe8"s), 0);
  EXPECT_EQ(DecodeThreadStateAccess(kElfMachineX86_64, ""), 0);
}

std::string Arm64(std::initializer_list<uint32_t> instructions) {
  std::string code;
  for (uint32_t instruction : instructions) code.append(reinterpret_cast<const char*>(&instruction), 4);
  return code;
}

TEST(ThreadStateAccess, DecodesArm64) {
  const auto decode = [](const std::string& code) { return DecodeThreadStateAccess(kElfMachineArm64, code); };
  // mrs x0, tpidr_el0; add x0, x0, #0x1, lsl #12; ldr x0, [x0, #0x28]; ret
  EXPECT_EQ(decode(Arm64({0xd53bd040, 0x91400400, 0xf9401400, 0xd65f03c0})), 0x1028);
  // bti c; mrs x1, tpidr_el0; add x0, x1, #0, lsl #12; add x0, x0, #0x28; ldr x0, [x0]; ret
  EXPECT_EQ(decode(Arm64({0xd503245f, 0xd53bd041, 0x91400020, 0x9100a000, 0xf9400000, 0xd65f03c0})), 0x28);
  // Another register than the one that has the thread pointer.
  EXPECT_EQ(decode(Arm64({0xd53bd040, 0x91400420, 0xf9401400, 0xd65f03c0})), 0);
  EXPECT_EQ(decode(Arm64({0xd53bd040, 0xf9401400})), 0);
  EXPECT_EQ(decode(""), 0);
}

}  // namespace
}  // namespace tributary
