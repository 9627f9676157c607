#include "kernel-collector/probes/ring_consumer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <cstring>
#include <string>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kBusy = BPF_RINGBUF_BUSY_BIT, kDiscarded = BPF_RINGBUF_DISCARD_BIT;

// The kernel's half of a ring.
class FakeKernelRing {
 public:
  explicit FakeKernelRing(size_t bytes) : words_(bytes / 8) {}

  // Returns the position of the record, or nullopt if the ring has no space for it.
  std::optional<uint64_t> Write(std::string_view bytes, uint32_t bits = 0) {
    const uint64_t whole = (8 + bytes.size() + 7) / 8 * 8, at = produced;
    if (at + whole - consumed > size()) return std::nullopt;
    SetHeader(at, static_cast<uint32_t>(bytes.size()) | bits);
    for (size_t i = 0; i < bytes.size(); ++i) memory()[(at + 8 + i) % size()] = static_cast<uint8_t>(bytes[i]);
    produced += whole;
    return at;
  }
  void SetHeader(uint64_t at, uint32_t header) { memcpy(memory() + at % size(), &header, sizeof(header)); }
  RingConsumer Reader() { return RingConsumer(&consumed, &produced, {memory(), size()}); }

  uint64_t consumed = 0, produced = 0;

 private:
  uint8_t* memory() { return reinterpret_cast<uint8_t*>(words_.data()); }
  size_t size() const { return words_.size() * 8; }

  std::vector<uint64_t> words_;
};

std::vector<std::string> Drain(RingConsumer& reader) {
  std::vector<std::string> records;
  reader.Drain([&](std::span<const uint8_t> record) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(record.data()) % 8, 0u);
    records.emplace_back(record.begin(), record.end());
  });
  return records;
}

TEST(RingConsumer, DeliversRecordsInOrderAndReturnsTheirSpace) {
  FakeKernelRing kernel(256);
  RingConsumer reader = kernel.Reader();
  EXPECT_THAT(Drain(reader), IsEmpty());
  kernel.Write("one");
  kernel.Write("");
  kernel.Write("three");
  EXPECT_THAT(Drain(reader), ElementsAre("one", "", "three"));
  EXPECT_EQ(kernel.consumed, kernel.produced);
  EXPECT_THAT(Drain(reader), IsEmpty());
}

TEST(RingConsumer, DeliversRecordsThatWrapAtEveryPlace) {
  FakeKernelRing kernel(256);
  RingConsumer reader = kernel.Reader();
  for (size_t i = 0; i < 500; ++i) {
    // Also records that fill the ring.
    const std::string text = std::to_string(i) + std::string(i * 7 % 245, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(kernel.Write(text)) << i;
    ASSERT_THAT(Drain(reader), ElementsAre(text));
  }
}

TEST(RingConsumer, ReturnsTheSpaceOfEachRecordAtOnce) {
  FakeKernelRing kernel(64);
  RingConsumer reader = kernel.Reader();
  kernel.Write("0123456789abcdef");  // 24 bytes
  kernel.Write("0123456789abcdef");
  std::vector<uint64_t> consumed;
  reader.Drain([&](std::span<const uint8_t>) { consumed.push_back(kernel.consumed); });
  EXPECT_THAT(consumed, ElementsAre(0, 24));
  EXPECT_EQ(kernel.consumed, 48u);
}

TEST(RingConsumer, StopsAtARecordThatIsStillWritten) {
  FakeKernelRing kernel(256);
  RingConsumer reader = kernel.Reader();
  kernel.Write("first");
  const uint64_t busy = *kernel.Write("second", kBusy);
  kernel.Write("third");
  EXPECT_THAT(Drain(reader), ElementsAre("first"));
  EXPECT_THAT(Drain(reader), IsEmpty());
  EXPECT_EQ(kernel.consumed, busy);
  kernel.SetHeader(busy, 6);
  EXPECT_THAT(Drain(reader), ElementsAre("second", "third"));
}

TEST(RingConsumer, SkipsDiscardedRecords) {
  FakeKernelRing kernel(256);
  RingConsumer reader = kernel.Reader();
  kernel.Write("gone", kDiscarded);
  kernel.Write("here");
  kernel.Write("gone too", kDiscarded);
  EXPECT_THAT(Drain(reader), ElementsAre("here"));
  EXPECT_EQ(kernel.consumed, kernel.produced);
}

TEST(RingConsumer, EndsAfterOneLapIfTheKernelWritesAllTheTime) {
  FakeKernelRing kernel(256);
  RingConsumer reader = kernel.Reader();
  kernel.Write("12345678");  // 16 bytes
  size_t records = 0;
  reader.Drain([&](std::span<const uint8_t>) {
    ++records;
    kernel.Write("12345678", records % 2 == 0 ? kDiscarded : 0);
    kernel.Write("12345678");
  });
  EXPECT_LE(records, 256u / 16);
  EXPECT_GT(Drain(reader).size(), 0u);
}

TEST(RingConsumer, SkipsToTheHeadAfterAnImpossibleLength) {
  for (const uint32_t length : {17u, 248u, 249u, 0x3fffffffu}) {
    FakeKernelRing kernel(256);
    RingConsumer reader = kernel.Reader();
    kernel.Write("good");
    const uint64_t bad = *kernel.Write("8 bytes!");
    kernel.SetHeader(bad, length);
    EXPECT_THAT(Drain(reader), ElementsAre("good", "")) << length;
    EXPECT_EQ(kernel.consumed, kernel.produced);
    kernel.Write("again");
    EXPECT_THAT(Drain(reader), ElementsAre("again")) << length;
  }
}

TEST(RingConsumer, SkipsToAnImpossibleHead) {
  for (const uint64_t head : {uint64_t{264}, uint64_t{1} << 40, UINT64_MAX}) {
    FakeKernelRing kernel(256);
    RingConsumer reader = kernel.Reader();
    kernel.Write("good");
    kernel.produced = head;
    EXPECT_THAT(Drain(reader), ElementsAre("")) << head;
    EXPECT_EQ(kernel.consumed, head / 8 * 8);
  }
}

}  // namespace
}  // namespace tributary
