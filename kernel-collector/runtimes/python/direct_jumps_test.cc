#include "kernel-collector/runtimes/python/direct_jumps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "elf/elf_format.h"

namespace tributary {
namespace {

using namespace std::literals;

std::vector<uint64_t> Jumps(uint16_t machine, std::string_view code) {
  std::vector<uint64_t> out;
  ForEachDirectJump(machine, code, 0x1000, [&](uint64_t target) { out.push_back(target); });
  return out;
}

TEST(DirectJumps, ReadsEachX86Jump) {
  // The code before each jump has bytes that would look like a jump at another begin.
  const std::string code =
      "\xf3\x0f\x1e\xfa"                          // endbr64
      "\x48\xb8\xe9\x00\x00\x00\x00\x00\x00\x00"  // movabs rax, 0xe9
      "\xe9\x00\x01\x00\x00"                      // jmp +0x100
      "\x66\xb8\xe9\x00"                          // mov ax, 0xe9
      "\x0f\x84\xfb\xff\xff\xff"                  // je -5
      "\xf7\x05\x00\x00\x00\x00\xe9\x00\x00\x00"  // test dword [rip], 0xe9
      "\xf7\xd8"                                  // neg eax
      "\x48\x8b\x84\x24\xe9\x00\x00\x00"          // mov rax, [rsp + 0xe9]
      "\x75\x10"                                  // jne +0x10
      "\xc5\xf8\x77"                              // vzeroupper
      "\xc4\xe3\x79\x0f\xc0\xe9"                  // vpalignr xmm0, xmm0, xmm0, 0xe9
      "\x62\xf1\x7d\x48\x6f\x44\x24\x01"          // vmovdqa32 zmm0, [rsp + 64]
      "\xe8\x00\x00\x00\x00"                      // call
      "\xff\xe0"                                  // jmp rax
      "\xeb\xfe"s;                                // jmp to itself
  EXPECT_EQ(Jumps(kElfMachineX86_64, code), (std::vector<uint64_t>{0x1113, 0x1018, 0x1043, 0x104b}));
}

TEST(DirectJumps, StopsAtUnknownX86Code) {
  EXPECT_TRUE(Jumps(kElfMachineX86_64, "\x06\xe9\x00\x01\x00\x00"s).empty());
  EXPECT_TRUE(Jumps(kElfMachineX86_64, "\xe9\x00\x01"s).empty()) << "cut off";
  EXPECT_TRUE(Jumps(kElfMachineX86_64, std::string(100, '\x66')).empty());
}

TEST(DirectJumps, ReadsEachArm64Jump) {
  std::string code;
  for (uint32_t instruction : {0x14000040u,     // B +0x100
                               0x17ffffffu,     // B -4
                               0x54000080u,     // B.EQ +0x10
                               0xb4000100u,     // CBZ X0, +0x20
                               0x37000100u,     // TBNZ W0, #0, +0x20
                               0x94000040u,     // BL
                               0xd61f0000u}) {  // BR X0
    code.append(reinterpret_cast<const char*>(&instruction), sizeof(instruction));
  }
  EXPECT_EQ(Jumps(kElfMachineArm64, code), (std::vector<uint64_t>{0x1100, 0x1000, 0x1018, 0x102c, 0x1030}));
}

}  // namespace
}  // namespace tributary
