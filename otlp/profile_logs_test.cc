#include "otlp/profile_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "otlp/json.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::common::v1::AnyValue;
using ::opentelemetry::proto::logs::v1::LogRecord;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kTime = 1'700'000'000'000'000'000;

class ProfileLogsTest : public ::testing::Test {
 protected:
  // A sample of one thread in main → work, where `work` is inlined into `outer`.
  ProfilesBuilder::SampleInfo Sample(int64_t time, uint64_t value = 1000) {
    ProfilesBuilder::SampleInfo sample;
    sample.resource = builder_.AddResource({{"container.id", "c1"}, {"host.name", "h"}});
    sample.attributes = builder_.AddEnding(
        builder_.AddThread({.thread_name = "worker", .executable_name = "etcd", .executable_path = "", .pid = Pid{3}}),
        Ending::kNoTable);
    const MappingIndex mapping =
        builder_.AddMapping(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "\x01\x02"), "/bin/etcd");
    const LocationIndex leaf = builder_.AddLocation(
        FrameKind::kNative, mapping, 0x1000,
        {{builder_.AddFunction("work", "_Z4work", "a.c"), 12}, {builder_.AddFunction("outer", "")}});
    const LocationIndex unnamed = builder_.AddLocation(FrameKind::kKernel, {}, 0x2000, {});
    sample.stack = builder_.AddStack(std::vector<LocationIndex>{leaf, unnamed});
    sample.time = UnixNs{kTime + time};
    sample.value = value;
    return sample;
  }

  // Converts the samples that were added. The request has one resource.
  std::vector<LogRecord> Convert(LogRecords records) {
    const ProfilesRequestPtr profiles = builder_.Finish();
    const LogsText logs = MakeLogs(*profiles, identity_, records);
    EXPECT_EQ(logs.dropped_strings, 0u);
    EXPECT_EQ(logs.request->resource_logs_size(), 1);
    const auto& resource = logs.request->resource_logs(0);
    EXPECT_EQ(resource.resource().SerializeAsString(), profiles->resource_profiles(0).resource().SerializeAsString());
    EXPECT_EQ(resource.scope_logs(0).scope().version(), "1.2.3");
    return {resource.scope_logs(0).log_records().begin(), resource.scope_logs(0).log_records().end()};
  }

  static std::map<std::string, AnyValue> AttributesOf(const LogRecord& record) {
    std::map<std::string, AnyValue> out;
    for (const auto& attribute : record.attributes()) {
      EXPECT_TRUE(out.emplace(attribute.key(), attribute.value()).second) << attribute.key() << " twice";
    }
    return out;
  }
  static int64_t Int(const LogRecord& record, const std::string& key) {
    const auto attributes = AttributesOf(record);
    const auto it = attributes.find(key);
    return it == attributes.end() ? -1 : it->second.int_value();
  }
  static std::string Text(const LogRecord& record, const std::string& key) {
    const auto attributes = AttributesOf(record);
    const auto it = attributes.find(key);
    return it == attributes.end() ? "" : it->second.string_value();
  }

  const RequestIdentity identity_{.sender = "reducer-1", .session = {0xab}, .first = 100};
  ProfilesBuilder builder_{{.size_of = ProfilesBuilder::SizeOf::kStackLogs, .scope_version = "1.2.3"}};
};

TEST_F(ProfileLogsTest, ARecordStandsForTheSamplesOfAStack) {
  for (const int64_t time : {50, 10, 30}) builder_.AddSample(Sample(time));
  const std::vector<LogRecord> records = Convert(LogRecords::kStacks);
  ASSERT_THAT(records, SizeIs(1));
  const LogRecord& record = records[0];
  EXPECT_EQ(record.time_unix_nano(), static_cast<uint64_t>(kTime + 10));
  EXPECT_EQ(record.observed_time_unix_nano(), static_cast<uint64_t>(kTime + 50));
  EXPECT_EQ(record.severity_number(), 9);
  EXPECT_EQ(record.event_name(), "tributary.samples");
  EXPECT_EQ(record.body().string_value(), "work");
  EXPECT_EQ(Text(record, "tributary.sender"), "reducer-1");
  EXPECT_EQ(Text(record, "tributary.session"), "ab000000000000000000000000000000");
  EXPECT_EQ(Int(record, "tributary.sequence"), 100);
  EXPECT_EQ(Text(record, "tributary.sample.type"), "cpu");
  EXPECT_EQ(Text(record, "tributary.sample.unit"), "nanoseconds");
  EXPECT_EQ(Int(record, "tributary.sample.count"), 3);
  EXPECT_EQ(Int(record, "tributary.sample.value"), 3000);
  EXPECT_EQ(Int(record, "tributary.sample.period"), 1000);
  EXPECT_EQ(Int(record, "tributary.sample.last_time_unix_nano"), kTime + 50);
  EXPECT_EQ(Text(record, "thread.name"), "worker");
  EXPECT_EQ(Int(record, "process.pid"), 3);
  EXPECT_EQ(Text(record, "tributary.stack.ending"), EndingName(Ending::kNoTable));
}

TEST_F(ProfileLogsTest, TheStackIsAListOfFrames) {
  builder_.AddSample(Sample(0));
  const std::vector<LogRecord> records = Convert(LogRecords::kStacks);
  EXPECT_EQ(
      ToJson(AttributesOf(records.at(0)).at("tributary.stack")),
      R"({"arrayValue":{"values":[{"kvlistValue":{"values":[)"
      R"({"key":"function","value":{"stringValue":"work"}},{"key":"file","value":{"stringValue":"a.c"}},)"
      R"({"key":"line","value":{"intValue":"12"}},{"key":"type","value":{"stringValue":"native"}},)"
      R"({"key":"inlined","value":{"boolValue":true}},{"key":"address","value":{"intValue":"4096"}},)"
      R"({"key":"mapping","value":{"stringValue":"/bin/etcd"}},{"key":"build_id","value":{"stringValue":"0102"}}]}},)"
      R"({"kvlistValue":{"values":[{"key":"function","value":{"stringValue":"outer"}},)"
      R"({"key":"type","value":{"stringValue":"native"}},{"key":"address","value":{"intValue":"4096"}},)"
      R"({"key":"mapping","value":{"stringValue":"/bin/etcd"}},{"key":"build_id","value":{"stringValue":"0102"}}]}},)"
      R"({"kvlistValue":{"values":[{"key":"type","value":{"stringValue":"kernel"}},)"
      R"({"key":"address","value":{"intValue":"8192"}}]}}]}})");
}

TEST_F(ProfileLogsTest, ARecordMayStandForOneSample) {
  for (const int64_t time : {50, 10, 30}) builder_.AddSample(Sample(time));
  ProfilesBuilder::SampleInfo off_cpu = Sample(60, 7);
  off_cpu.type = builder_.AddType({"off_cpu", "nanoseconds"});
  builder_.AddSample(off_cpu);
  off_cpu.value = 8;
  off_cpu.time.value += 1;
  builder_.AddSample(off_cpu);
  const std::vector<LogRecord> records = Convert(LogRecords::kSamples);
  ASSERT_THAT(records, SizeIs(5));
  std::vector<int64_t> sequences, values;
  for (const LogRecord& record : records) {
    sequences.push_back(Int(record, "tributary.sequence"));
    values.push_back(Int(record, "tributary.sample.value"));
    EXPECT_EQ(Int(record, "tributary.sample.count"), 1);
    EXPECT_EQ(record.time_unix_nano(), record.observed_time_unix_nano());
  }
  EXPECT_THAT(sequences, ElementsAre(100, 101, 102, 103, 104));
  EXPECT_THAT(values, ElementsAre(1000, 1000, 1000, 7, 8));
  EXPECT_EQ(Text(records[4], "tributary.sample.type"), "off_cpu");
}

// A row with a count has as many equal time stamps in profiles. As logs, it would take many times its size.
TEST_F(ProfileLogsTest, SamplesOfOneRowStayTogether) {
  ProfilesBuilder::SampleInfo sample = Sample(0, 6000);
  sample.count = 6;
  builder_.AddSample(sample);
  builder_.AddSample(Sample(10));
  const std::vector<LogRecord> records = Convert(LogRecords::kSamples);
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(Int(records[0], "tributary.sample.count"), 6);
  EXPECT_EQ(Int(records[0], "tributary.sample.value"), 6000);
  EXPECT_EQ(Int(records[1], "tributary.sequence"), 106);
}

// A sender may choose such a name. CPU samples are sent as samples/count, too.
TEST_F(ProfileLogsTest, ATypeWithTheNameOfCpuProfilesKeepsItsValues) {
  ProfilesBuilder::SampleInfo sample = Sample(0, 70);
  sample.type = builder_.AddType({"samples", "count"});
  builder_.AddSample(sample);
  const std::vector<LogRecord> records = Convert(LogRecords::kStacks);
  EXPECT_EQ(Text(records.at(0), "tributary.sample.type"), "samples");
  EXPECT_EQ(Int(records.at(0), "tributary.sample.value"), 70);
  EXPECT_EQ(Int(records.at(0), "tributary.sample.count"), 1);
}

TEST_F(ProfileLogsTest, ACpuSampleWithoutAValueStaysOne) {
  builder_.AddSample(Sample(0, 0));
  const std::vector<LogRecord> records = Convert(LogRecords::kStacks);
  EXPECT_EQ(Text(records.at(0), "tributary.sample.type"), "cpu");
  EXPECT_EQ(Int(records.at(0), "tributary.sample.value"), 0);
}

// A row with a large count has no time stamps in profiles, and stays one record.
TEST_F(ProfileLogsTest, ALargeCountIsOneRecord) {
  ProfilesBuilder::SampleInfo sample = Sample(0, 100'000);
  sample.count = 100;
  builder_.AddSample(sample);
  const std::vector<LogRecord> records = Convert(LogRecords::kSamples);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(Int(records[0], "tributary.sample.count"), 100);
  EXPECT_EQ(Int(records[0], "tributary.sample.value"), 100'000);
}

TEST_F(ProfileLogsTest, HasTheLinkToASpan) {
  ProfilesBuilder::SampleInfo sample = Sample(0);
  sample.link = builder_.AddLink(std::string(16, 't'), std::string(8, 's'));
  builder_.AddSample(sample);
  const std::vector<LogRecord> records = Convert(LogRecords::kStacks);
  EXPECT_EQ(records.at(0).trace_id(), std::string(16, 't'));
  EXPECT_EQ(records.at(0).span_id(), std::string(8, 's'));
}

// Otherwise a profiled program could make a reader drop records of others as duplicates.
TEST_F(ProfileLogsTest, ASamplesOwnAttributesReplaceNoOthers) {
  ProfilesBuilder::SampleInfo sample = Sample(0);
  sample.attributes = builder_.AddOwn(
      sample.attributes,
      {{"k", "v"}, {"tributary.sender", "x"}, {"tributary.sequence", "1"}, {"tributary.stack", "forged"}});
  builder_.AddSample(sample);
  const std::vector<LogRecord> records = Convert(LogRecords::kStacks);
  EXPECT_EQ(Text(records.at(0), "k"), "v");
  EXPECT_EQ(Text(records.at(0), "tributary.sender"), "reducer-1");
  EXPECT_EQ(Int(records.at(0), "tributary.sequence"), 100);
  EXPECT_TRUE(AttributesOf(records.at(0)).at("tributary.stack").has_array_value());
}

TEST_F(ProfileLogsTest, ASampleMayHaveNoStack) {
  ProfilesBuilder::SampleInfo sample = Sample(0);
  sample.stack = builder_.AddStack({});
  builder_.AddSample(sample);
  const std::vector<LogRecord> records = Convert(LogRecords::kStacks);
  EXPECT_EQ(records.at(0).body().string_value(), "no stack");
  EXPECT_EQ(AttributesOf(records.at(0)).at("tributary.stack").array_value().values_size(), 0);
}

TEST_F(ProfileLogsTest, TheNamesOfAHugeStackAreCut) {
  ProfilesBuilder::SampleInfo sample = Sample(0);
  std::vector<LocationIndex> stack;
  for (int i = 0; i < 100; ++i) {
    const std::string name = std::string(ProfilesBuilder::kStringBytesMax - 3, 'n') + std::to_string(100 + i);
    stack.push_back(builder_.AddLocation(FrameKind::kNative, {}, 0x100, {{builder_.AddFunction(name, "")}}));
  }
  sample.stack = builder_.AddStack(stack);
  builder_.AddSample(sample);
  const size_t bound = builder_.bytes();
  const ProfilesRequestPtr profiles = builder_.Finish();
  const LogsText logs = MakeLogs(*profiles, identity_, LogRecords::kStacks);
  EXPECT_GT(logs.dropped_strings, 80u);
  EXPECT_LT(logs.request->ByteSizeLong(), kRecordStackBytesMax + 100 * kLogFrameBytes + 2000);
  EXPECT_LE(logs.request->ByteSizeLong(), bound);
  const auto& record = logs.request->resource_logs(0).scope_logs(0).log_records(0);
  EXPECT_LE(record.body().string_value().size(), 256u);
  const AnyValue stack_value = AttributesOf(record).at("tributary.stack");
  const auto& frames = stack_value.array_value().values();
  EXPECT_EQ(frames.size(), 100) << "frames without names stay";
  EXPECT_EQ(frames[99].kvlist_value().values(0).key(), "type");
}

// A location may have thousands of inlined functions, and the debug information is the tenant's.
TEST_F(ProfileLogsTest, ARecordHasAtMostAThousandFrames) {
  ProfilesBuilder::SampleInfo sample = Sample(0);
  std::vector<ProfilesBuilder::Line> lines(500, {builder_.AddFunction("inlined", "")});
  std::vector<LocationIndex> stack;
  for (uint64_t i = 0; i < 10; ++i) stack.push_back(builder_.AddLocation(FrameKind::kNative, {}, i, lines));
  sample.stack = builder_.AddStack(stack);
  builder_.AddSample(sample);
  const size_t bound = builder_.bytes();
  const ProfilesRequestPtr profiles = builder_.Finish();
  const LogsText logs = MakeLogs(*profiles, identity_, LogRecords::kStacks);
  EXPECT_EQ(logs.dropped_strings, 5000u - kRecordFramesMax);
  EXPECT_LE(logs.request->ByteSizeLong(), bound);
  const auto& record = logs.request->resource_logs(0).scope_logs(0).log_records(0);
  EXPECT_EQ(AttributesOf(record).at("tributary.stack").array_value().values_size(), kRecordFramesMax);
}

// The name of the leaf is in the body, too.
TEST_F(ProfileLogsTest, TheBoundHoldsForManyThreadsWithOneLongName) {
  const LocationIndex leaf = builder_.AddLocation(
      FrameKind::kNative, {}, 1, {{builder_.AddFunction(std::string(ProfilesBuilder::kStringBytesMax, 'n'), "")}});
  const StackIndex stack = builder_.AddStack(std::vector<LocationIndex>{leaf});
  for (int32_t tid = 0; tid < 100; ++tid) {
    ProfilesBuilder::SampleInfo sample = Sample(0);
    sample.stack = stack;
    sample.attributes = builder_.AddThread(
        {.thread_name = "t", .executable_name = "", .executable_path = "", .pid = {}, .tid = Tid{tid}});
    builder_.AddSample(sample);
  }
  const size_t bound = builder_.bytes();
  const ProfilesRequestPtr profiles = builder_.Finish();
  EXPECT_LE(MakeLogs(*profiles, identity_, LogRecords::kStacks).request->ByteSizeLong(), bound);
}

}  // namespace
}  // namespace tributary::otlp
