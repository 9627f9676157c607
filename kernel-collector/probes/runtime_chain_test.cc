#include "kernel-collector/probes/runtime_chain.h"

#include <gtest/gtest.h>

#include <vector>

namespace tributary {
namespace {

constexpr uint64_t SecondWord(int32_t position, uint32_t check) {
  return uint64_t{check} << 32 | static_cast<uint32_t>(position);
}

TEST(RuntimeChains, ReadsTheChainsOfARecordInOrder) {
  const std::vector<uint64_t> words = {TRIB_CHAIN_HEADER(7, 2, TRIB_CHAIN_COMPLETE),
                                       0x7f0011223344,
                                       SecondWord(-2, 0xfedcba98),
                                       0x7f0011223388 | TRIB_CHAIN_ENTRY,
                                       SecondWord(123456, 5),
                                       TRIB_CHAIN_HEADER(255, 0, TRIB_CHAIN_UNREADABLE),
                                       TRIB_CHAIN_HEADER(9, 1, TRIB_CHAIN_DEPTH),
                                       TRIB_CHAIN_ENTRY,
                                       0};
  RuntimeChains chains(words);
  const auto first = chains.Next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->runtime, 7);
  EXPECT_EQ(first->end, TRIB_CHAIN_COMPLETE);
  ASSERT_EQ(first->size(), 2u);
  EXPECT_EQ(first->At(0).code, 0x7f0011223344u);
  EXPECT_EQ(first->At(0).position, -2);
  EXPECT_EQ(first->At(0).check, 0xfedcba98u);
  EXPECT_FALSE(first->At(0).is_entry);
  EXPECT_EQ(first->At(1).code, 0x7f0011223388u);
  EXPECT_EQ(first->At(1).position, 123456);
  EXPECT_EQ(first->At(1).check, 5u);
  EXPECT_TRUE(first->At(1).is_entry);

  const auto empty = chains.Next();
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->runtime, 255);
  EXPECT_EQ(empty->end, TRIB_CHAIN_UNREADABLE);
  EXPECT_EQ(empty->size(), 0u);

  const auto last = chains.Next();
  ASSERT_TRUE(last);
  ASSERT_EQ(last->size(), 1u);
  EXPECT_EQ(last->At(0).code, 0u);
  EXPECT_TRUE(last->At(0).is_entry);
  EXPECT_FALSE(chains.Next());
  EXPECT_FALSE(chains.Next());
}

TEST(RuntimeChains, EndsAtAMalformedChain) {
  const uint64_t good = TRIB_CHAIN_HEADER(1, 0, TRIB_CHAIN_COMPLETE);
  const uint64_t bad[] = {TRIB_CHAIN_HEADER(0, 0, TRIB_CHAIN_COMPLETE),
                          TRIB_CHAIN_HEADER(TRIB_RUNTIMES_MAX, 0, TRIB_CHAIN_COMPLETE),
                          TRIB_CHAIN_HEADER(1, 2, TRIB_CHAIN_COMPLETE),
                          TRIB_CHAIN_HEADER(1, 0xffff, TRIB_CHAIN_COMPLETE),
                          TRIB_CHAIN_HEADER(1, 0, TRIB_CHAIN_END_COUNT),
                          good | 1ull << 40,
                          ~0ull};
  for (const uint64_t header : bad) {
    const std::vector<uint64_t> words = {good, header, 1, 2, 3};
    RuntimeChains chains(words);
    EXPECT_TRUE(chains.Next());
    EXPECT_FALSE(chains.Next()) << std::hex << header;
    EXPECT_FALSE(chains.Next()) << std::hex << header;
  }
  EXPECT_FALSE(RuntimeChains({}).Next());
}

}  // namespace
}  // namespace tributary
