#include "kernel-collector/stored_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tributary {
namespace {

using testing::ElementsAre;

// A sample with every part: 1 kernel frame, 2 user frames, 3 words of chains, and 2 words of the tail.
trib_sample SampleWithAllParts() {
  trib_sample sample = {};
  sample.pid = 42;
  sample.kernel_frames = 1;
  sample.user_frames = 2;
  sample.runtime_words = 3;
  sample.tail = 1 << 2 | 1 << 5;
  return sample;
}

SampleRecord RecordOf(const trib_sample& sample, const std::vector<uint64_t>& words) {
  SampleRecord record;
  record.sample = &sample;
  record.frames = std::span(words).first(3);
  record.chains = std::span(words).subspan(3, 3);
  record.tail = std::span(words).last(2);
  return record;
}

void ExpectParts(const SampleRecord& record) {
  EXPECT_EQ(record.sample->pid, 42u);
  EXPECT_THAT(record.kernel(), ElementsAre(10));
  EXPECT_THAT(record.user(), ElementsAre(11, 12));
  EXPECT_THAT(record.chains, ElementsAre(13, 14, 15));
  EXPECT_EQ(record.TailWord(2), 16u);
  EXPECT_EQ(record.TailWord(5), 17u);
}

TEST(StoredRecord, KeepsAllPartsOfRecordsOneAfterAnother) {
  const std::vector<uint64_t> words = {10, 11, 12, 13, 14, 15, 16, 17};
  const trib_sample sample = SampleWithAllParts();
  const SampleRecord plain = RecordOf(sample, words);
  trib_sample with_stack = sample;
  with_stack.stack_bytes = 11;
  SampleRecord copy = RecordOf(with_stack, words);
  const trib_resume resume = {.pc = 1, .executable = {.inode = 77, .device = 8}};
  const std::vector<uint8_t> stack = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  copy.resume = &resume;
  copy.stack = stack;

  std::vector<uint64_t> stored;
  StoreRecord(copy, &stored);
  const size_t second = stored.size();
  StoreRecord(plain, &stored);

  const SampleRecord first_view = ViewRecord(stored.data());
  ExpectParts(first_view);
  ASSERT_NE(first_view.resume, nullptr);
  EXPECT_EQ(first_view.resume->executable.inode, 77u);
  EXPECT_EQ(first_view.resume->executable.device, 8u);
  EXPECT_TRUE(std::ranges::equal(first_view.stack, stack));
  const SampleRecord second_view = ViewRecord(stored.data() + second);
  ExpectParts(second_view);
  EXPECT_EQ(second_view.resume, nullptr);
  EXPECT_TRUE(second_view.stack.empty());
}

}  // namespace
}  // namespace tributary
