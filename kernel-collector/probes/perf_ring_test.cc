#include "kernel-collector/probes/perf_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kernel-collector/probes/records_testing.h"
#include "kernel-collector/probes/sideband_record.h"

namespace tributary {
namespace {

// The kernel's half of the ring.
class FakeKernelRing {
 public:
  explicit FakeKernelRing(size_t bytes) : page_(std::make_unique<perf_event_mmap_page>()), data_(bytes) {}

  bool Write(const std::vector<uint8_t>& record) {
    if (page_->data_head - page_->data_tail + record.size() > data_.size()) return false;
    for (size_t i = 0; i < record.size(); ++i) data_[(page_->data_head + i) % data_.size()] = record[i];
    page_->data_head += record.size();
    return true;
  }
  PerfRing Reader() { return PerfRing(page_.get(), data_); }
  perf_event_mmap_page& page() { return *page_; }
  std::vector<uint8_t>& data() { return data_; }

 private:
  std::unique_ptr<perf_event_mmap_page> page_;
  std::vector<uint8_t> data_;
};

std::string CommOf(std::span<const uint8_t> record) {
  SidebandRecord parsed = ParseSidebandRecord(record);
  auto* comm = std::get_if<CommEvent>(&parsed);
  return comm == nullptr ? "?" : std::string(comm->comm);
}

TEST(PerfRing, DeliversRecordsThatWrap) {
  FakeKernelRing kernel(256);
  PerfRing ring = kernel.Reader();
  // Records of 56 bytes in a ring of 256: over many laps, records are split at every place.
  for (int i = 0; i < 200; ++i) {
    std::string name = "name" + std::to_string(i);
    ASSERT_TRUE(kernel.Write(CommRecord(name, i)));
    ring.Refresh();
    std::span<const uint8_t> record = ring.Next();
    ASSERT_EQ(CommOf(record), name);
    EXPECT_EQ(SidebandRecordTime(record), MonotonicNs{i});
    ring.Pop();
    EXPECT_TRUE(ring.Next().empty());
    ring.Commit();
  }
  EXPECT_EQ(ring.corruptions(), 0u);
}

TEST(PerfRing, ShowsOnlyTheSnapshot) {
  FakeKernelRing kernel(1024);
  PerfRing ring = kernel.Reader();
  ASSERT_TRUE(kernel.Write(CommRecord("first", 1)));
  EXPECT_TRUE(ring.Next().empty());
  ring.Refresh();
  ASSERT_TRUE(kernel.Write(CommRecord("second", 2)));
  EXPECT_EQ(CommOf(ring.Next()), "first");
  EXPECT_EQ(CommOf(ring.Next()), "first") << "looking does not take";
  ring.Pop();
  EXPECT_TRUE(ring.Next().empty());
  ring.Refresh();
  EXPECT_EQ(CommOf(ring.Next()), "second");
}

TEST(PerfRing, GivesRoomBackOnCommitOnly) {
  FakeKernelRing kernel(128);
  PerfRing ring = kernel.Reader();
  std::vector<uint8_t> record = CommRecord("x", 1);
  ASSERT_TRUE(kernel.Write(record));
  ASSERT_TRUE(kernel.Write(record));
  ring.Refresh();
  ring.Next();
  ring.Pop();
  EXPECT_FALSE(kernel.Write(CommRecord("longer than before", 1)));
  EXPECT_EQ(kernel.page().data_tail, 0u);
  ring.Commit();
  EXPECT_EQ(kernel.page().data_tail, record.size());
}

TEST(PerfRing, SkipsSnapshotWithImpossibleSize) {
  for (uint16_t size : {0, 4, 7, 57, 60, 0xfff8}) {
    FakeKernelRing kernel(1024);
    PerfRing ring = kernel.Reader();
    ASSERT_TRUE(kernel.Write(CommRecord("good", 1)));
    std::vector<uint8_t> bad = CommRecord("bad", 2);
    reinterpret_cast<perf_event_header*>(bad.data())->size = size;
    ASSERT_TRUE(kernel.Write(bad));
    ring.Refresh();
    EXPECT_EQ(CommOf(ring.Next()), "good");
    ring.Pop();
    EXPECT_TRUE(ring.Next().empty()) << size;
    EXPECT_EQ(ring.corruptions(), 1u) << size;
    ring.Commit();
    ASSERT_TRUE(kernel.Write(CommRecord("after", 3)));
    ring.Refresh();
    EXPECT_EQ(CommOf(ring.Next()), "after") << size;
  }
}

TEST(PerfRing, SurvivesImpossibleHead) {
  FakeKernelRing kernel(256);
  PerfRing ring = kernel.Reader();
  kernel.page().data_head = uint64_t{1} << 40;
  ring.Refresh();
  EXPECT_TRUE(ring.Next().empty());
  EXPECT_EQ(ring.corruptions(), 1u);
  kernel.page().data_head = 16;  // backwards
  ring.Refresh();
  EXPECT_TRUE(ring.Next().empty());
  EXPECT_EQ(ring.corruptions(), 2u);
}

TEST(PerfRing, SurvivesHeaderAtUnalignedPlace) {
  FakeKernelRing kernel(256);
  PerfRing ring = kernel.Reader();
  kernel.page().data_head = 252;
  ring.Refresh();
  EXPECT_TRUE(ring.Next().empty());  // size 0
  kernel.page().data_head = 252 + 64;
  ring.Refresh();
  EXPECT_TRUE(ring.Next().empty());  // a header would wrap
  EXPECT_EQ(ring.corruptions(), 2u);
}

}  // namespace
}  // namespace tributary
