#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <tuple>

#include "absl/strings/escaping.h"
#include "base/directory_testing.h"
#include "base/hex.h"
#include "otlp/built_request.h"
#include "otlp/json.h"
#include "otlp/json_limits.h"
#include "otlp/profile_logs.h"
#include "otlp/profiles_builder.h"
#include "otlp/request_parts.h"
#include "reducer/export/file_sender.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "test/otlp/random_samples_testing.h"
#include "test/otlp/validator.h"

namespace tributary::otlp {
namespace {

// Counts and nanoseconds by sample type, as read by a receiver.
using Totals = std::map<TypeIndex, std::pair<uint64_t, uint64_t>>;

Totals Read(const ProfilesRequest& request) {
  Totals totals;
  const auto& strings = request.dictionary().string_table();
  for (const auto& resource : request.resource_profiles()) {
    for (const auto& profile : resource.scope_profiles(0).profiles()) {
      bool cpu = strings[profile.sample_type().type_strindex()] == "samples";
      auto& [count, ns] = totals[cpu ? ProfilesBuilder::kCpu : TypeIndex{1}];
      for (const auto& sample : profile.samples()) {
        uint64_t times = static_cast<uint64_t>(sample.timestamps_unix_nano_size());
        uint64_t values = 0;
        for (int64_t value : sample.values()) values += static_cast<uint64_t>(value);
        uint64_t n = cpu && times == 0 ? values : times;
        count += n;
        ns += cpu ? n * static_cast<uint64_t>(profile.period()) : values;
      }
    }
  }
  return totals;
}

struct LogTotals {
  uint64_t count = 0, value = 0;
};

// As Read, for the records of a logs request.
LogTotals ReadLogs(const LogsRequest& request) {
  LogTotals totals;
  for (const auto& resource : request.resource_logs()) {
    for (const auto& record : resource.scope_logs(0).log_records()) {
      for (const auto& attribute : record.attributes()) {
        const auto value = static_cast<uint64_t>(attribute.value().int_value());
        if (attribute.key() == "tributary.sample.count") totals.count += value;
        if (attribute.key() == "tributary.sample.value") totals.value += value;
      }
    }
  }
  return totals;
}

TEST(ProfilesProperty, EveryRequestIsValidAndAddsUp) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    World world(seed);
    ProfilesBuilder builder({.scope_version = "0"});
    Totals expected;
    for (uint64_t n = 1 + world.Draw(200); n > 0; --n) {
      ProfilesBuilder::SampleInfo sample = world.Sample(builder);
      auto& [count, ns] = expected[sample.type];
      count += sample.count;
      ns += sample.value;
      builder.AddSample(sample);
    }
    size_t bound = builder.bytes();
    ProfilesRequestPtr request = builder.Finish();
    std::vector<Finding> findings = ValidateProfilesBytes(request->SerializeAsString());
    ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << DescribeFindings(findings);
    EXPECT_EQ(Read(*request), expected) << "seed " << seed;
    EXPECT_LE(request->ByteSizeLong(), bound) << "seed " << seed;
  }
}

// The samples are written without protobuf's objects. Protobuf must write the same bytes.
TEST(ProfilesProperty, ABuiltRequestHasTheBytesOfItsMessage) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    World world(seed);
    ProfilesBuilder builder({.aggregated = seed % 3 == 0, .scope_version = "0"});
    for (uint64_t n = world.Draw(300); n > 0; --n) builder.AddSample(world.Sample(builder));
    const size_t bound = builder.bytes();
    BuiltRequest built = builder.FinishBuilt();
    const RequestIdentity identity{.sender = "r", .session = {1}, .first = seed};
    const uint64_t next = built.SetProfileIds(identity);
    std::string bytes;
    built.AppendTo(&bytes);
    EXPECT_LE(bytes.size(), bound) << "seed " << seed;
    EXPECT_LE(bound, bytes.size() + bytes.size() / 2 + 1000) << "seed " << seed;
    ProfilesRequest message;
    ASSERT_TRUE(message.ParseFromString(bytes)) << "seed " << seed;
    EXPECT_EQ(message.SerializeAsString(), bytes) << "seed " << seed;
    EXPECT_EQ(built.content(), ContentOf(message)) << "seed " << seed;
    EXPECT_EQ(SetProfileIds(identity, &message), next) << "seed " << seed;
    EXPECT_EQ(message.SerializeAsString(), bytes) << "the same ids, seed " << seed;
    EXPECT_EQ(built.AsRequest().SerializeAsString(), bytes) << "seed " << seed;
    std::string again;
    built.AppendTo(&again);
    EXPECT_EQ(again, bytes) << "also when the message was made, seed " << seed;
  }
}

// Many stacks and time stamps: indices and lengths need several bytes. bytes() decides when a request is full.
TEST(ProfilesProperty, TheBytesOfAFullRequestAreCounted) {
  for (const bool aggregated : {false, true}) {
    ProfilesBuilder builder({.aggregated = aggregated, .scope_version = "0"});
    const ResourceIndex resource = builder.AddResource({{"host.name", "h"}});
    for (uint64_t i = 0; !builder.full(); ++i) {
      ProfilesBuilder::SampleInfo sample;
      sample.resource = resource;
      sample.attributes = builder.AddThread({.thread_name = "t", .tid = Tid{static_cast<int32_t>(i % 300)}});
      std::vector<LocationIndex> frames;
      for (uint64_t frame = 0; frame < 5; ++frame) {
        frames.push_back(builder.AddLocation(FrameKind::kNative, {}, (i % 20'000) * (frame + 1), {}));
      }
      sample.stack = builder.AddStack(frames);
      sample.time = UnixNs{static_cast<int64_t>(i)};
      sample.value = i % 7 == 0 ? 17'000'000 : 1'000'000;
      sample.count = i % 11 == 0 ? 17 : 1;
      builder.AddSample(sample);
    }
    const size_t bound = builder.bytes();
    std::string bytes;
    builder.FinishBuilt().AppendTo(&bytes);
    EXPECT_LE(bytes.size(), bound);
    EXPECT_GE(bytes.size(), bound / 100 * 90);
  }
}

// In JSON, small entries grow most: many stacks of few frames, and one value or time stamp each.
TEST(ProfilesProperty, AFullRequestInJsonIsSmallerThan4MiB) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    World world(seed);
    ProfilesBuilder::Options options{.aggregated = seed % 2 == 0, .scope_version = "0"};
    FitJson(&options);
    ProfilesBuilder builder(options);
    for (uint64_t i = 0; !builder.full(); ++i) {
      ProfilesBuilder::SampleInfo sample = world.Sample(builder);
      const std::vector<LocationIndex> frames(1, builder.AddLocation(FrameKind::kNative, {}, i % 5'000, {}));
      sample.stack = builder.AddStack(frames);
      builder.AddSample(sample);
    }
    EXPECT_LT(ToJson(*builder.Finish()).size(), 4u << 20) << "seed " << seed;
  }
}

// A table that is used again has no samples of the last request.
TEST(ProfilesProperty, AReleasedTableIsEmpty) {
  std::string first;
  SampleTable table;
  for (int i = 0; i < 3; ++i) {
    World world(7);
    ProfilesBuilder builder({.scope_version = "0"}, std::move(table));
    for (int n = 0; n < 200; ++n) builder.AddSample(world.Sample(builder));
    BuiltRequest built = builder.FinishBuilt();
    table = builder.ReleaseTable();
    std::string bytes;
    built.AppendTo(&bytes);
    if (i == 0) first = bytes;
    EXPECT_EQ(bytes, first);
  }
}

// Logs repeat each stack. The builder must count this, so that no request becomes too large.
TEST(ProfilesProperty, EveryLogsRequestAddsUpAndKeepsItsBound) {
  using SizeOf = ProfilesBuilder::SizeOf;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const bool single = seed % 2 == 0;
    World world(seed);
    ProfilesBuilder builder({.size_of = single ? SizeOf::kSampleLogs : SizeOf::kStackLogs, .scope_version = "0"});
    uint64_t values = 0, counts = 0;
    for (uint64_t n = 1 + world.Draw(200); n > 0; --n) {
      const ProfilesBuilder::SampleInfo sample = world.Sample(builder);
      values += sample.value;
      counts += sample.count;
      builder.AddSample(sample);
    }
    const size_t bound = builder.bytes();
    const ProfilesRequestPtr profiles = builder.Finish();
    const RequestIdentity identity{.sender = "r", .session = {1}, .first = 1'000'000'000'000};
    RequestIdentity next = identity;
    next.first = SetProfileIds(identity, profiles.get());
    const LogsText logs = MakeLogs(*profiles, identity, single ? LogRecords::kSamples : LogRecords::kStacks);
    const std::vector<Finding> findings = ValidateLogsBytes(logs.request->SerializeAsString());
    ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << DescribeFindings(findings);
    const LogTotals totals = ReadLogs(*logs.request);
    EXPECT_EQ(totals.value, values) << "seed " << seed;
    EXPECT_EQ(totals.count, counts) << "seed " << seed;
    EXPECT_EQ(identity.first + totals.count, next.first) << "seed " << seed;
    EXPECT_LE(logs.request->ByteSizeLong(), bound) << "seed " << seed;
  }
}

// With small limits, names are left out. Nothing else may break.
TEST(ProfilesProperty, AFullRequestStaysValid) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    World world(seed);
    ProfilesBuilder builder({.bytes_soft = 4000, .bytes_hard = 6000});
    std::string name(60, 'x');
    while (!builder.full()) {
      ProfilesBuilder::SampleInfo sample = world.Sample(builder);
      name.back() = static_cast<char>('a' + world.Draw(26));
      LocationIndex named =
          builder.AddLocation(FrameKind::kNative, {}, world.Draw(9), {{builder.AddFunction(name, "")}});
      sample.stack = builder.AddStack(std::vector<LocationIndex>{named});
      builder.AddSample(sample);
    }
    ProfilesRequestPtr request = builder.Finish();
    std::vector<Finding> findings = ValidateProfiles(*request);
    // The test replaces stacks that the world made, so these stacks are orphans.
    std::erase_if(findings, [](const Finding& finding) { return finding.rule.ends_with(".orphan"); });
    ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << DescribeFindings(findings);
  }
}

void Add(const Totals& more, Totals* sums) {
  for (const auto& [type, totals] : more) {
    (*sums)[type].first += totals.first;
    (*sums)[type].second += totals.second;
  }
}

ProfilesRequestPtr RandomRequest(World& world) {
  ProfilesBuilder builder({.scope_version = "0"});
  for (uint64_t n = 1 + world.Draw(200); n > 0; --n) builder.AddSample(world.Sample(builder));
  return builder.Finish();
}

TEST(ProfilesProperty, EachPartOfARequestIsValidAndTheyAddUp) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    const ProfilesRequestPtr request = RandomRequest(world);
    Totals sums;
    for (const RequestPart& part : PartsOf(*request, "container.id")) {
      const ProfilesRequestPtr copy = CopyPart(*request, part.resources);
      const std::vector<Finding> findings = ValidateProfilesBytes(copy->SerializeAsString());
      ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << DescribeFindings(findings);
      Add(Read(*copy), &sums);
    }
    EXPECT_EQ(sums, Read(*request)) << "seed " << seed;
  }
}

// Reads a line of OTLP/JSON with protobuf's reader, which takes ids in base64.
ProfilesRequest ReadJson(std::string line) {
  const std::regex id("\"(traceId|spanId)\":\"([0-9a-f]*)\"");
  std::string text;
  for (std::smatch match; std::regex_search(line, match, id); line = match.suffix()) {
    text += match.prefix();
    text += "\"" + match[1].str() + "\":\"" + absl::Base64Escape(*FromHex(match[2].str())) + "\"";
  }
  ProfilesRequest request;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text + line, &request).ok()) << line;
  return request;
}

TEST(ProfilesProperty, FilesOfJsonLinesAreValidAndAddUp) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    World world(seed);
    const TestDirectory directory;
    FakeClock clock;
    Metrics metrics;
    Totals sent, read;
    {
      auto sender = FileSender::Open({.directory = directory.path(),
                                      .attribute = "container.id",
                                      .format = FileOptions::Format::kOtlpJson,
                                      .rotate_bytes = 1'000,
                                      .keep = 1'000},
                                     clock, metrics);
      ASSERT_TRUE(sender.ok()) << sender.status();
      for (int i = 0; i < 5; ++i) {
        const ProfilesRequestPtr request = RandomRequest(world);
        Add(Read(*request), &sent);
        ASSERT_TRUE((*sender)->Send(*request, {}, kNsPerSecond).status.ok());
      }
    }
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        const ProfilesRequest request = ReadJson(line);
        const std::vector<Finding> findings = ValidateProfiles(request);
        ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << DescribeFindings(findings);
        Add(Read(request), &read);
      }
    }
    EXPECT_EQ(read, sent) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tributary::otlp
