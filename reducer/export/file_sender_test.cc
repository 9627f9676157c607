#include "reducer/export/file_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/directory_testing.h"
#include "otlp/json.h"
#include "otlp/request_parts.h"
#include "reducer/export/file_size_limit_testing.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kPeriod = 1'000'000;
const std::string kStamp = "20231114T221320000Z";

// Makes requests with stacks of one function.
class TestRequest {
 public:
  void Add(const std::string& service, const std::string& function, uint32_t count = 1,
           const SampleTypeInfo& type = {"cpu", "nanoseconds"}) {
    Attributes attributes = {{"host.id", "h"}};
    if (!service.empty()) {
      attributes.push_back({"service.name", service});
      attributes.push_back({"container.id", "c-" + service});
    }
    const otlp::FunctionIndex name = builder_.AddFunction(function, "", "");
    const otlp::LocationIndex location = builder_.AddLocation(FrameKind::kNative, otlp::MappingIndex(0), 1, {{name}});
    builder_.AddSample({.resource = builder_.AddResource(attributes),
                        .attributes = {},
                        .link = {},
                        .stack = builder_.AddStack(std::vector{location}),
                        .type = builder_.AddType(type),
                        .time = UnixNs{1'700'000'000 * kNsPerSecond},
                        .value = count * kPeriod,
                        .count = count});
  }
  otlp::ProfilesRequestPtr Finish() { return builder_.Finish(); }

 private:
  otlp::ProfilesBuilder builder_{{}};
};

class FileSenderTest : public ::testing::Test {
 protected:
  FileSenderTest() { options_.directory = directory_.path() + "/d"; }
  void Open() {
    sender_.reset();
    auto opened = FileSender::Open(options_, clock_, metrics_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    sender_ = *std::move(opened);
  }
  otlp::SendResult Send(const otlp::ProfilesRequest& request) { return sender_->Send(request, {}, kNsPerSecond); }
  void SendAll(TestRequest& request) {
    const otlp::SendResult result = Send(*request.Finish());
    EXPECT_TRUE(result.status.ok()) << result.status;
  }
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(options_.directory)) {
      if (entry.path().filename() == ".lock") continue;
      std::ifstream file(entry.path());
      files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return files;
  }
  // Adds up all files as flamegraph.pl and speedscope read them.
  std::map<std::string, uint64_t> Sums() const {
    std::map<std::string, uint64_t> sums;
    for (const auto& [name, text] : Files()) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        const size_t space = line.rfind(' ');
        sums[line.substr(0, space)] += std::stoull(line.substr(space + 1));
      }
    }
    return sums;
  }
  uint64_t Counted(const std::string& name) { return metrics_.AddCounter(name, "", {{"exporter", "file"}}).value(); }

  const TestDirectory directory_;
  FileOptions options_;
  FakeClock clock_;
  Metrics metrics_;
  std::unique_ptr<FileSender> sender_;
};

TEST_F(FileSenderTest, WritesAFileForEachServiceAndType) {
  Open();
  TestRequest request;
  request.Add("checkout", "f");
  request.Add("checkout", "f", 2);
  request.Add("checkout", "f", 1, {"off_cpu", "nanoseconds"});
  request.Add("Cart", "g");
  request.Add("", "h");
  SendAll(request);
  EXPECT_THAT(Files(),
              UnorderedElementsAre(Pair("checkout.cpu.nanoseconds." + kStamp + ".folded.part", "f 3000000\n"),
                                   Pair("checkout.off_cpu.nanoseconds." + kStamp + ".folded.part", "f 1000000\n"),
                                   Pair("%43art.cpu.nanoseconds." + kStamp + ".folded.part", "g 1000000\n"),
                                   Pair("unknown.cpu.nanoseconds." + kStamp + ".folded.part", "h 1000000\n")));
}

TEST_F(FileSenderTest, FilesGetTheirFinalNamesAtTheEnd) {
  Open();
  TestRequest request;
  request.Add("checkout", "f");
  SendAll(request);
  sender_.reset();
  EXPECT_THAT(Files(), ElementsAre(Pair("checkout.cpu.nanoseconds." + kStamp + ".folded", "f 1000000\n")));
}

TEST_F(FileSenderTest, WritesAFileForEachContainer) {
  EXPECT_EQ(SetFileOption("by", "container", &options_), "");
  Open();
  TestRequest request;
  request.Add("a", "f");
  request.Add("", "f");
  SendAll(request);
  EXPECT_THAT(Files(), UnorderedElementsAre(Pair("c-a.cpu.nanoseconds." + kStamp + ".folded.part", "f 1000000\n"),
                                            Pair("unknown.cpu.nanoseconds." + kStamp + ".folded.part", "f 1000000\n")));
}

TEST_F(FileSenderTest, WritesOneRequestALineInJson) {
  EXPECT_EQ(SetFileOption("format", "otlp_json", &options_), "");
  Open();
  TestRequest both, one;
  both.Add("a", "f");
  both.Add("b", "g");
  one.Add("a", "h");
  const otlp::ProfilesRequestPtr first = both.Finish(), second = one.Finish();
  EXPECT_TRUE(Send(*first).status.ok());
  EXPECT_TRUE(Send(*second).status.ok());
  const auto line = [](const otlp::ProfilesRequest& request) { return otlp::ToJson(request) + "\n"; };
  EXPECT_THAT(Files(),
              UnorderedElementsAre(
                  Pair("a." + kStamp + ".jsonl.part", line(*otlp::CopyPart(*first, std::vector{0})) + line(*second)),
                  Pair("b." + kStamp + ".jsonl.part", line(*otlp::CopyPart(*first, std::vector{1})))));
}

TEST_F(FileSenderTest, HostileNamesStayInTheDirectory) {
  Open();
  TestRequest request;
  const std::vector<std::string> names = {
      "../../../tmp/x",         "/etc/passwd", "..", std::string("a\0b", 3), "a\nb", "A", "a", "other",
      std::string(1 << 20, 'x')};
  for (const std::string& name : names) request.Add(name, "f");
  SendAll(request);
  const std::map<std::string, std::string> files = Files();
  EXPECT_EQ(files.size(), names.size());
  EXPECT_TRUE(files.contains("other.cpu.nanoseconds." + kStamp + ".folded.part"));
  EXPECT_TRUE(files.contains("%6Fther.cpu.nanoseconds." + kStamp + ".folded.part"));
  EXPECT_EQ(Counted("tributary_export_redirected_samples_total"), 1u);  // of the name with 1 MiB
  size_t outside = 0;
  for (const auto& entry : fs::directory_iterator(directory_.path())) outside += entry.path().filename() != "d";
  EXPECT_EQ(outside, 0u);
}

TEST_F(FileSenderTest, NamesBeyondTheLimitShareFiles) {
  options_.series_max = 20;
  Open();
  TestRequest request;
  for (int i = 0; i < 25; ++i) request.Add("s" + std::to_string(i), "f", 2);
  SendAll(request);
  EXPECT_EQ(Files().size(), 21u);
  EXPECT_EQ(Counted("tributary_export_redirected_samples_total"), 10u);
  EXPECT_EQ(Files()["other.cpu.nanoseconds." + kStamp + ".folded.part"],
            "f 2000000\nf 2000000\nf 2000000\nf 2000000\nf 2000000\n");
  EXPECT_THAT(Sums(), ElementsAre(Pair("f", 50 * kPeriod)));
  // Names with files keep them.
  TestRequest again;
  again.Add("s0", "f", 1);
  SendAll(again);
  EXPECT_EQ(Counted("tributary_export_redirected_samples_total"), 10u);
}

// Their values have different units, so they cannot share a file.
TEST_F(FileSenderTest, TypesBeyondTheLimitAreLeftOut) {
  options_.series_max = 1;
  Open();
  TestRequest request;
  request.Add("a", "f");
  for (size_t i = 0; i < FileSender::kOtherSeriesMax + 3; ++i) {
    for (int k = 0; k < 5; ++k) request.Add("x", "f", 1, {"t" + std::to_string(i), "u"});
  }
  const otlp::SendResult result = Send(*request.Finish());
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.left_out_samples, 15u);
  EXPECT_EQ(result.rejected_items, 0);
  EXPECT_FALSE(result.message.empty());
  EXPECT_EQ(Files().size(), 1 + FileSender::kOtherSeriesMax);
}

TEST_F(FileSenderTest, ARetryAfterAFullDiskWritesNothingTwice) {
  Open();
  TestRequest request;
  request.Add("a", "f");
  for (int i = 0; i < 200; ++i) request.Add("b", "function-" + std::to_string(i));
  request.Add("c", "f");
  const otlp::ProfilesRequestPtr made = request.Finish();
  for (int i = 0; i < 2; ++i) {
    const FileSizeLimit limit(1'000);
    const otlp::SendResult result = Send(*made);
    EXPECT_FALSE(result.status.ok());
    EXPECT_TRUE(result.may_retry);
  }
  EXPECT_TRUE(Send(*made).status.ok());
  std::map<std::string, uint64_t> sums = Sums();
  EXPECT_EQ(sums.size(), 201u);
  EXPECT_EQ(sums["f"], 2 * kPeriod);
  EXPECT_EQ(sums["function-7"], kPeriod);
}

// For example, the first request cannot be read from its shard for some time.
TEST_F(FileSenderTest, AnotherRequestRemovesAPartOfARequest) {
  Open();
  TestRequest cut, other;
  cut.Add("a", "f");
  for (int i = 0; i < 200; ++i) cut.Add("b", "function-" + std::to_string(i));
  other.Add("c", "g", 2);
  const otlp::ProfilesRequestPtr first = cut.Finish(), second = other.Finish();
  {
    const FileSizeLimit limit(1'000);
    EXPECT_FALSE(sender_->Send(*first, {.first = 0}, kNsPerSecond).status.ok());
  }
  EXPECT_TRUE(sender_->Send(*second, {.first = 201}, kNsPerSecond).status.ok());
  EXPECT_THAT(Sums(), ElementsAre(Pair("g", 2 * kPeriod)));
  EXPECT_TRUE(sender_->Send(*first, {.first = 0}, kNsPerSecond).status.ok());
  std::map<std::string, uint64_t> sums = Sums();
  EXPECT_EQ(sums.size(), 202u);
  EXPECT_EQ(sums["f"], kPeriod);
}

// The next run writes the whole request.
TEST_F(FileSenderTest, AStopRemovesAPartOfARequest) {
  Open();
  TestRequest whole, cut;
  whole.Add("a", "f");
  SendAll(whole);
  cut.Add("a", "f");
  for (int i = 0; i < 200; ++i) cut.Add("b", "function-" + std::to_string(i));
  const otlp::ProfilesRequestPtr made = cut.Finish();
  {
    const FileSizeLimit limit(1'000);
    EXPECT_FALSE(Send(*made).status.ok());
  }
  EXPECT_THAT(Sums(), ElementsAre(Pair("f", 2 * kPeriod)));
  sender_.reset();
  EXPECT_THAT(Files(), ElementsAre(Pair("a.cpu.nanoseconds." + kStamp + ".folded", "f 1000000\n")));
}

TEST_F(FileSenderTest, ATimeOutOrACancelEndsACall) {
  Open();
  TestRequest request;
  request.Add("a", "f");
  const otlp::ProfilesRequestPtr made = request.Finish();
  const otlp::SendResult late = sender_->Send(*made, {}, 0);
  EXPECT_EQ(late.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(late.may_retry);
  sender_->Cancel();
  EXPECT_EQ(Send(*made).status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(Files().empty());
}

TEST_F(FileSenderTest, ALargeRequestRotatesItsFile) {
  options_.rotate_bytes = 64 << 10;
  options_.keep = 1'000;
  Open();
  TestRequest request;
  constexpr int kStacks = 3'000;
  for (int i = 0; i < kStacks; ++i) request.Add("a", std::string(100, 'x') + std::to_string(i));
  SendAll(request);
  uint64_t sum = 0;
  for (const auto& [stack, value] : Sums()) sum += value;
  EXPECT_EQ(sum, kStacks * kPeriod);
  EXPECT_GE(Files().size(), 4u);
  for (const auto& [name, text] : Files()) {
    EXPECT_LE(text.size(), 64u << 10);
    EXPECT_TRUE(text.ends_with('\n'));
  }
}

TEST_F(FileSenderTest, FinishesOldFilesAtTheNextRequest) {
  Open();
  TestRequest a, b;
  a.Add("a", "f");
  b.Add("b", "f");
  SendAll(a);
  clock_.Advance(60 * kNsPerMinute);
  SendAll(b);
  EXPECT_TRUE(Files().contains("a.cpu.nanoseconds." + kStamp + ".folded"));
}

TEST_F(FileSenderTest, ACancelEndsTheSweepOfOldFiles) {
  Open();
  TestRequest a, b;
  a.Add("a", "f");
  b.Add("b", "f");
  SendAll(a);
  clock_.Advance(60 * kNsPerMinute);
  sender_->Cancel();
  EXPECT_FALSE(Send(*b.Finish()).status.ok());
  EXPECT_TRUE(Files().contains("a.cpu.nanoseconds." + kStamp + ".folded.part"));
}

// A killed process may have written a part of a request. The next run writes the whole request, because its cursor was
// not saved.
TEST_F(FileSenderTest, AKilledRunLeavesWholeLinesOnly) {
  Open();
  TestRequest request;
  request.Add("a", "f");
  const otlp::ProfilesRequestPtr made = request.Finish();
  EXPECT_TRUE(Send(*made).status.ok());
  sender_.reset();
  const std::string name = options_.directory + "/a.cpu.nanoseconds.20231114T221320500Z.folded";
  std::ofstream(name + ".part") << "f 1000000\nf 10";
  Open();
  EXPECT_TRUE(Send(*made).status.ok());
  EXPECT_THAT(Sums(), ElementsAre(Pair("f", 3 * kPeriod)));
}

TEST_F(FileSenderTest, CountsCutStacks) {
  Open();
  otlp::ProfilesBuilder builder{{}};
  std::vector<otlp::LocationIndex> frames;
  for (uint64_t i = 0; i < 200; ++i) {
    const otlp::FunctionIndex name = builder.AddFunction(std::string(1'000, 'n') + std::to_string(i), "", "");
    frames.push_back(builder.AddLocation(FrameKind::kNative, otlp::MappingIndex(0), i, {{name}}));
  }
  builder.AddSample({.resource = builder.AddResource({{"service.name", "a"}}),
                     .attributes = {},
                     .link = {},
                     .stack = builder.AddStack(frames),
                     .type = otlp::ProfilesBuilder::kCpu,
                     .time = UnixNs{1},
                     .value = 7,
                     .count = 1});
  EXPECT_TRUE(Send(*builder.Finish()).status.ok());
  EXPECT_EQ(Counted("tributary_export_cut_stacks_total"), 1u);
}

}  // namespace
}  // namespace tributary
