#include "kernel-collector/runtimes/runtime_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "elf/elf_image_testing.h"
#include "kernel-collector/processes/runtime_binary_testing.h"

namespace tributary {
namespace {

// Changes what the next file contains. Null: a runtime that cannot be read.
std::function<void(FakeRuntimeBinary&)> next_file;

absl::StatusOr<RuntimeBinaryPtr> ReadNext(ElfFile&, std::string_view) {
  if (next_file == nullptr) return absl::UnimplementedError("stripped");
  auto binary = std::make_shared<FakeRuntimeBinary>(nullptr);
  next_file(*binary);
  return RuntimeBinaryPtr(std::move(binary));
}

class RuntimeReaderTest : public ::testing::Test {
 protected:
  // All files have the same bytes, and so the same identity.
  RuntimeBinaryPtr Read(const std::function<void(FakeRuntimeBinary&)>& change) {
    next_file = change;
    return reader_.Read(**file_, "/bin/a");
  }
  static std::string LogOf(const std::function<void()>& act) {
    ::testing::internal::CaptureStderr();
    act();
    return ::testing::internal::GetCapturedStderr();
  }

  const RuntimeKind kinds_[1] = {{"python", TRIB_RUNTIME_PYTHON, ReadNext}};
  FakeClock clock_;
  Metrics metrics_;
  RuntimeReader reader_{AllRuntimes(), clock_, metrics_, kinds_};
  const std::string bytes_ = testing::ElfImage().Write();
  const absl::StatusOr<std::unique_ptr<ElfFile>> file_ = ElfFile::FromMemory(bytes_);
};

void Same(FakeRuntimeBinary&) {}

TEST_F(RuntimeReaderTest, SharesEqualRuntimes) {
  const RuntimeBinaryPtr first = Read(Same);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(Read(Same), first);
}

// A build ID is chosen by who writes the file. A crafted file must not give another file its layout.
TEST_F(RuntimeReaderTest, ReadsEachFile) {
  const RuntimeBinaryPtr crafted = Read([](FakeRuntimeBinary& b) { b.layout.python.frame_back = 8; });
  std::vector<RuntimeBinaryPtr> all = {crafted};
  for (const std::function<void(FakeRuntimeBinary&)>& change : std::vector<std::function<void(FakeRuntimeBinary&)>>{
           Same, [](FakeRuntimeBinary& b) { b.layout.python.tls_state = -16; },
           [](FakeRuntimeBinary& b) { b.loops[0].end += 16; }, [](FakeRuntimeBinary& b) { b.version = "3.11.3"; },
           [](FakeRuntimeBinary& b) { b.name = "cpython"; }, [](FakeRuntimeBinary& b) { b.kind = FrameKind::kJit; },
           [](FakeRuntimeBinary& b) { b.types = 1; }}) {
    const RuntimeBinaryPtr read = Read(change);
    for (const RuntimeBinaryPtr& other : all) EXPECT_NE(read, other) << all.size();
    EXPECT_EQ(Read(change), read) << all.size();
    all.push_back(read);
  }
}

TEST_F(RuntimeReaderTest, ForgetsRuntimesThatAreNotUsed) {
  for (size_t i = 0; i < 3 * RuntimeReader::kKnownMax; ++i) {
    Read([i](FakeRuntimeBinary& b) { b.version = std::to_string(i); });
  }
  std::vector<RuntimeBinaryPtr> used;
  const auto number = [](size_t i) { return [i](FakeRuntimeBinary& b) { b.version = std::to_string(i); }; };
  for (size_t i = 0; i < RuntimeReader::kKnownMax + 1; ++i) used.push_back(Read(number(i)));
  EXPECT_EQ(Read(number(0)), used[0]);
  EXPECT_NE(Read(number(RuntimeReader::kKnownMax)), used.back()) << "above the limit, files share nothing";
}

TEST_F(RuntimeReaderTest, LimitsItsLog) {
  const std::string log = LogOf([&] {
    std::vector<RuntimeBinaryPtr> used;
    for (int i = 0; i < 100; ++i)
      used.push_back(Read([i](FakeRuntimeBinary& b) { b.version = fmt::format("v{}", i); }));
    clock_.Advance(kNsPerMinute);
    Read([](FakeRuntimeBinary& b) { b.version = "last"; });
    for (int i = 0; i < 100; ++i) Read(nullptr);
  });
  EXPECT_NE(log.find("version=v0 "), std::string::npos) << log;
  EXPECT_EQ(log.find("version=v1 "), std::string::npos) << log;
  EXPECT_NE(log.find("version=last path=/bin/a suppressed=99"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
  EXPECT_EQ(metrics_.AddCounter("tributary_collector_runtimes_unsupported_total", "").value(), 100u);
}

}  // namespace
}  // namespace tributary
