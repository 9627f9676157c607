#include "otlp/profiles_builder.h"

#include <gtest/gtest.h>

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::profiles::v1development;

ExecutableId Id(ExecutableIdKind kind, std::string_view bytes) { return *ExecutableId::Make(kind, bytes); }

class ProfilesBuilderTest : public ::testing::Test {
 protected:
  // A sample of one thread of one process, at a stack of one frame.
  ProfilesBuilder::SampleInfo Sample(int64_t time, uint64_t value, uint32_t count = 1) {
    ProfilesBuilder::SampleInfo sample;
    sample.resource = builder_.AddResource({{"container.id", "c1"}, {"host.name", "h"}, {"host.id", "m1"}});
    sample.attributes = builder_.AddThread({.thread_name = "worker",
                                            .executable_name = "etcd",
                                            .executable_path = "/usr/local/bin/etcd",
                                            .pid = Pid{3086},
                                            .tid = Tid{11322}});
    MappingIndex mapping = builder_.AddMapping(Id(ExecutableIdKind::kGnuBuildId, "\x01\x02"), "/usr/local/bin/etcd");
    LocationIndex location =
        builder_.AddLocation(FrameKind::kNative, mapping, 0x1000, {{builder_.AddFunction("main()", "_Z4mainv")}});
    sample.stack = builder_.AddStack(std::vector<LocationIndex>{location});
    sample.time = UnixNs{time};
    sample.value = value;
    sample.count = count;
    return sample;
  }
  const proto::Profile& Profile(const ProfilesRequest& request, int index) {
    return request.resource_profiles(0).scope_profiles(0).profiles(index);
  }
  const std::string& String(const ProfilesRequest& request, int index) {
    return request.dictionary().string_table(index);
  }

  ProfilesBuilder builder_{{.scope_version = "1.2.3"}};
};

// The sum of a request, for receivers that do not need the time of each sample.
TEST(ProfilesBuilderAggregated, HasValuesWithoutTimeStamps) {
  ProfilesBuilder builder({.aggregated = true});
  ProfilesBuilder::SampleInfo sample;
  sample.resource = builder.AddResource({{"host.name", "h"}});
  sample.stack = builder.AddStack(
      std::vector<LocationIndex>{builder.AddLocation(FrameKind::kNative, {}, 1, {{builder.AddFunction("f", "")}})});
  sample.value = 1000;
  for (const int64_t time : {10, 20, 30}) {
    sample.time = UnixNs{time};
    builder.AddSample(sample);
  }
  sample.type = builder.AddType({"off_cpu", "nanoseconds"});
  for (const uint64_t value : {uint64_t{5}, uint64_t{7}, UINT64_MAX}) {
    sample.value = value;
    builder.AddSample(sample);
  }
  const ProfilesRequestPtr request = builder.Finish();
  const auto& profiles = request->resource_profiles(0).scope_profiles(0).profiles();
  ASSERT_EQ(profiles.size(), 2);
  for (const proto::Profile& profile : profiles) {
    ASSERT_EQ(profile.samples_size(), 1);
    EXPECT_EQ(profile.samples(0).timestamps_unix_nano_size(), 0);
    ASSERT_EQ(profile.samples(0).values_size(), 1);
    EXPECT_EQ(profile.time_unix_nano() + profile.duration_nano(), 31u);
  }
  EXPECT_EQ(profiles[0].samples(0).values(0), 3);
  EXPECT_EQ(profiles[0].period(), 1000);
  EXPECT_EQ(profiles[1].samples(0).values(0), INT64_MAX) << "a sum does not wrap";
}

TEST_F(ProfilesBuilderTest, ReportsTheEndingOfAnIncompleteStack) {
  auto add = [&](Ending ending) {
    ProfilesBuilder::SampleInfo sample = Sample(1000, 7);
    sample.attributes = builder_.AddEnding(sample.attributes, ending);
    builder_.AddSample(sample);
  };
  add(Ending::kComplete);
  add(Ending::kKernelOnly);
  add(Ending::kNoTable);
  add(Ending::kNoTable);
  add(Ending::kUnknown);
  ProfilesRequestPtr request = builder_.Finish();
  // No further attribute for the first two, one sample for each of the other endings.
  const proto::Profile& profile = Profile(*request, 0);
  ASSERT_EQ(profile.samples_size(), 3);
  EXPECT_EQ(profile.samples(0).timestamps_unix_nano_size(), 2);
  EXPECT_EQ(profile.samples(0).attribute_indices_size(), 5);
  EXPECT_EQ(profile.samples(1).timestamps_unix_nano_size(), 2);
  const std::string_view wanted[] = {"no_table", "unknown"};
  for (int i : {1, 2}) {
    ASSERT_EQ(profile.samples(i).attribute_indices_size(), 6);
    const auto& attribute = request->dictionary().attribute_table(profile.samples(i).attribute_indices(5));
    EXPECT_EQ(String(*request, attribute.key_strindex()), "tributary.stack.ending");
    EXPECT_EQ(attribute.value().string_value(), wanted[i - 1]);
  }
}

TEST_F(ProfilesBuilderTest, CpuSamplesHaveTimeStampsAndAPeriod) {
  builder_.AddSample(Sample(1000, 52'631'578));
  builder_.AddSample(Sample(900, 52'631'578));
  ProfilesRequestPtr request = builder_.Finish();
  ASSERT_EQ(request->resource_profiles_size(), 1);
  EXPECT_EQ(request->resource_profiles(0).scope_profiles(0).scope().name(), "tributary");
  EXPECT_EQ(request->resource_profiles(0).scope_profiles(0).scope().version(), "1.2.3");
  const proto::Profile& profile = Profile(*request, 0);
  EXPECT_EQ(String(*request, profile.sample_type().type_strindex()), "samples");
  EXPECT_EQ(String(*request, profile.sample_type().unit_strindex()), "count");
  EXPECT_EQ(String(*request, profile.period_type().type_strindex()), "cpu");
  EXPECT_EQ(String(*request, profile.period_type().unit_strindex()), "nanoseconds");
  EXPECT_EQ(profile.period(), 52'631'578);
  EXPECT_EQ(profile.time_unix_nano(), 900u);
  EXPECT_EQ(profile.duration_nano(), 101u);
  ASSERT_EQ(profile.samples_size(), 1);
  EXPECT_EQ(profile.samples(0).timestamps_unix_nano_size(), 2);
  EXPECT_EQ(profile.samples(0).values_size(), 0);
}

TEST_F(ProfilesBuilderTest, SeparatesPeriods) {
  builder_.AddSample(Sample(1000, 10));
  builder_.AddSample(Sample(1001, 20));
  ProfilesRequestPtr request = builder_.Finish();
  ASSERT_EQ(request->resource_profiles(0).scope_profiles(0).profiles_size(), 2);
  EXPECT_EQ(Profile(*request, 0).period(), 10);
  EXPECT_EQ(Profile(*request, 1).period(), 20);
}

TEST_F(ProfilesBuilderTest, LosesNoNanosecondOfRowsWithHighCounts) {
  builder_.AddSample(Sample(1000, 1003, 4));         // few: 3 × 251 + 1 × 250
  builder_.AddSample(Sample(1000, 2'000'001, 100));  // many: as values
  builder_.AddSample(Sample(1001, 500, 0));          // a count of 0 means 1
  EXPECT_EQ(builder_.sample_count(), 105u);
  ProfilesRequestPtr request = builder_.Finish();
  uint64_t count = 0, ns = 0;
  for (const proto::Profile& profile : request->resource_profiles(0).scope_profiles(0).profiles()) {
    for (const proto::Sample& sample : profile.samples()) {
      uint64_t n = static_cast<uint64_t>(sample.timestamps_unix_nano_size());
      if (sample.values_size() > 0) {
        EXPECT_EQ(n, 0u);
        n = static_cast<uint64_t>(sample.values(0));
      }
      count += n;
      ns += n * static_cast<uint64_t>(profile.period());
    }
  }
  EXPECT_EQ(count, 105u);
  EXPECT_EQ(ns, 1003u + 2'000'001u + 500u);
}

TEST_F(ProfilesBuilderTest, OffCpuSamplesHaveValues) {
  for (uint64_t value : {7, 9}) {
    ProfilesBuilder::SampleInfo sample = Sample(1000, value);
    sample.type = builder_.AddType({"off_cpu", "nanoseconds"});
    builder_.AddSample(sample);
  }
  ProfilesRequestPtr request = builder_.Finish();
  const proto::Profile& profile = Profile(*request, 0);
  EXPECT_EQ(String(*request, profile.sample_type().type_strindex()), "off_cpu");
  EXPECT_EQ(String(*request, profile.sample_type().unit_strindex()), "nanoseconds");
  EXPECT_EQ(profile.period(), 0);
  EXPECT_FALSE(profile.has_period_type());
  ASSERT_EQ(profile.samples_size(), 1);
  EXPECT_EQ(profile.samples(0).values(0), 7);
  EXPECT_EQ(profile.samples(0).values(1), 9);
  EXPECT_EQ(profile.samples(0).timestamps_unix_nano_size(), 2);
}

TEST_F(ProfilesBuilderTest, OtherTypesHaveTheirNameAndUnit) {
  for (uint64_t value : {1'000, 24}) {
    ProfilesBuilder::SampleInfo sample = Sample(1000, value);
    sample.type = builder_.AddType({"alloc_space", "bytes"});
    builder_.AddSample(sample);
  }
  EXPECT_EQ(builder_.AddType({"cpu", "nanoseconds"}), ProfilesBuilder::kCpu);
  ProfilesRequestPtr request = builder_.Finish();
  const proto::Profile& profile = Profile(*request, 0);
  EXPECT_EQ(String(*request, profile.sample_type().type_strindex()), "alloc_space");
  EXPECT_EQ(String(*request, profile.sample_type().unit_strindex()), "bytes");
  EXPECT_FALSE(profile.has_period_type());
  ASSERT_EQ(profile.samples_size(), 1);
  EXPECT_EQ(profile.samples(0).values(0) + profile.samples(0).values(1), 1'024);
}

TEST_F(ProfilesBuilderTest, AttributesDescribeThreadMappingAndFrame) {
  builder_.AddSample(Sample(1000, 10));
  ProfilesRequestPtr request = builder_.Finish();
  std::vector<std::string> resource;
  for (const auto& attribute : request->resource_profiles(0).resource().attributes()) {
    resource.push_back(attribute.key() + "=" + attribute.value().string_value());
  }
  EXPECT_EQ(resource, (std::vector<std::string>{"container.id=c1", "host.name=h", "host.id=m1"}));

  auto attributes = [&](const auto& indices) {
    std::vector<std::string> out;
    for (int index : indices) {
      const auto& attribute = request->dictionary().attribute_table(index);
      const auto& value = attribute.value();
      out.push_back(String(*request, attribute.key_strindex()) + "=" +
                    (value.has_int_value() ? std::to_string(value.int_value()) : value.string_value()));
    }
    return out;
  };
  EXPECT_EQ(
      attributes(Profile(*request, 0).samples(0).attribute_indices()),
      (std::vector<std::string>{"thread.name=worker", "process.executable.name=etcd",
                                "process.executable.path=/usr/local/bin/etcd", "process.pid=3086", "thread.id=11322"}));
  EXPECT_EQ(attributes(request->dictionary().mapping_table(1).attribute_indices()),
            (std::vector<std::string>{"process.executable.build_id.gnu=0102"}));
  EXPECT_EQ(attributes(request->dictionary().location_table(1).attribute_indices()),
            (std::vector<std::string>{"profile.frame.type=native"}));
  const auto& function = request->dictionary().function_table(1);
  EXPECT_EQ(String(*request, function.name_strindex()), "main()");
  EXPECT_EQ(String(*request, function.system_name_strindex()), "_Z4mainv");
}

TEST_F(ProfilesBuilderTest, LeavesOutMangledNamesWithoutLinkageNames) {
  ProfilesBuilder builder({.linkage_names = false});
  EXPECT_EQ(builder.AddFunction("main()", "_Z4mainv").value, 1);
  EXPECT_EQ(builder.AddFunction("main()", "_Z4mainl").value, 1);
  EXPECT_EQ(builder.AddFunction("write", "write").value, 2);
  EXPECT_EQ(builder.AddFunction("read", "").value, 3);
  const ProfilesRequestPtr request = builder.Finish();
  const auto system_name = [this, &request](int function) {
    return String(*request, request->dictionary().function_table(function).system_name_strindex());
  };
  EXPECT_EQ(request->dictionary().function_table_size(), 4);
  EXPECT_EQ(system_name(1), "");
  EXPECT_EQ(system_name(2), "write");
  EXPECT_EQ(system_name(3), "read");
}

TEST_F(ProfilesBuilderTest, ElementZeroOfEveryTableIsZero) {
  ProfilesRequestPtr request = builder_.Finish();
  const proto::ProfilesDictionary& d = request->dictionary();
  EXPECT_EQ(d.mapping_table_size() + d.location_table_size() + d.function_table_size() + d.link_table_size() +
                d.string_table_size() + d.attribute_table_size() + d.stack_table_size(),
            7);
  EXPECT_EQ(d.ByteSizeLong(), 7u * 2);  // seven empty elements
}

TEST_F(ProfilesBuilderTest, MappingReachesItsHighestAddress) {
  MappingIndex mapping = builder_.AddMapping(Id(ExecutableIdKind::kContentHash, "0123456789abcdef"), "/x");
  builder_.AddLocation(FrameKind::kNative, mapping, 0x5000, {});
  builder_.AddLocation(FrameKind::kNative, mapping, 0x4000, {});
  ProfilesRequestPtr request = builder_.Finish();
  EXPECT_EQ(request->dictionary().mapping_table(mapping.value).memory_start(), 0u);
  EXPECT_EQ(request->dictionary().mapping_table(mapping.value).memory_limit(), 0x5001u);
}

TEST_F(ProfilesBuilderTest, MemoryWithoutAFileHasNoMapping) {
  EXPECT_EQ(builder_.AddMapping(ExecutableId(), "/memfd:x").value, 0);
  EXPECT_EQ(builder_.AddFunction("", "").value, 0);
  EXPECT_EQ(builder_.AddStack({}).value, 0);
}

TEST_F(ProfilesBuilderTest, InternsEqualThingsUnderOneIndex) {
  FunctionIndex f = builder_.AddFunction("f", "f");
  EXPECT_EQ(builder_.AddFunction("f", ""), f);
  EXPECT_NE(builder_.AddFunction("f", "_Zf"), f);
  LocationIndex a = builder_.AddLocation(FrameKind::kKernel, {}, 1, {{f}});
  EXPECT_EQ(builder_.AddLocation(FrameKind::kKernel, {}, 1, {{f}}), a);
  EXPECT_NE(builder_.AddLocation(FrameKind::kKernel, {}, 1, {{f, 7}}), a);
  EXPECT_NE(builder_.AddLocation(FrameKind::kKernel, {}, 1, {{f}, {f}}), a);
  EXPECT_NE(builder_.AddLocation(FrameKind::kNative, {}, 1, {{f}}), a);
  StackIndex s = builder_.AddStack(std::vector<LocationIndex>{a, a});
  EXPECT_EQ(builder_.AddStack(std::vector<LocationIndex>{a, a}), s);
  EXPECT_NE(builder_.AddStack(std::vector<LocationIndex>{a}), s);
  EXPECT_EQ(builder_.AddResource({{"host.name", "x"}}), builder_.AddResource({{"host.name", "x"}}));
}

TEST_F(ProfilesBuilderTest, ResourcesHaveTheTypesOfTheConventions) {
  ProfilesBuilder::SampleInfo sample = Sample(1000, 7);
  sample.resource = builder_.AddResource({{"container.image.repo_digests", "a@sha256:1,b\xff@sha256:2"},
                                          {"container.image.tags", "7"},
                                          {"k8s.container.restart_count", "3"},
                                          {"k8s.pod.label.n", "4,5"}});
  builder_.AddSample(sample);
  sample.resource = builder_.AddResource({{"k8s.container.restart_count", "many"}});
  builder_.AddSample(sample);
  ProfilesRequestPtr request = builder_.Finish();
  const auto value = [&](int resource, int attribute) {
    return request->resource_profiles(resource).resource().attributes(attribute).value();
  };
  ASSERT_EQ(value(0, 0).array_value().values_size(), 2);
  EXPECT_EQ(value(0, 0).array_value().values(0).string_value(), "a@sha256:1");
  EXPECT_EQ(value(0, 0).array_value().values(1).string_value(), "b\xef\xbf\xbd@sha256:2");
  ASSERT_EQ(value(0, 1).array_value().values_size(), 1);
  EXPECT_EQ(value(0, 1).array_value().values(0).string_value(), "7");
  EXPECT_EQ(value(0, 2).int_value(), 3);
  EXPECT_EQ(value(0, 3).string_value(), "4,5");
  EXPECT_EQ(value(1, 0).string_value(), "many");
}

TEST_F(ProfilesBuilderTest, MakesTextUtf8AndCutsItBetweenCharacters) {
  builder_.AddFunction("a\xff", "");
  std::string longer(ProfilesBuilder::kStringBytesMax - 1, 'x');
  builder_.AddFunction(longer + "\xc3\xa4\xc3\xa4", "");
  ProfilesRequestPtr request = builder_.Finish();
  EXPECT_EQ(String(*request, 1), "a\xef\xbf\xbd");
  EXPECT_EQ(String(*request, 2), longer);
}

TEST_F(ProfilesBuilderTest, KeepsTheLeafEndOfATooDeepStack) {
  std::vector<LocationIndex> deep;
  for (uint64_t i = 0; i < ProfilesBuilder::kStackFramesMax + 10; ++i) {
    deep.push_back(builder_.AddLocation(FrameKind::kNative, {}, i + 1, {}));
  }
  builder_.AddStack(deep);
  ProfilesRequestPtr request = builder_.Finish();
  const auto& stack = request->dictionary().stack_table(1);
  EXPECT_EQ(static_cast<size_t>(stack.location_indices_size()), ProfilesBuilder::kStackFramesMax);
  EXPECT_EQ(stack.location_indices(0), deep[0].value);
}

// A stack of a thousand functions with the longest possible names must still make a request that servers accept.
TEST_F(ProfilesBuilderTest, LeavesNamesOutBeforeARequestGrowsTooLarge) {
  std::vector<LocationIndex> stack;
  for (uint64_t i = 0; i < ProfilesBuilder::kStackFramesMax; ++i) {
    std::string name = std::to_string(i) + std::string(ProfilesBuilder::kStringBytesMax, 'n');
    stack.push_back(builder_.AddLocation(FrameKind::kNative, {}, i + 1, {{builder_.AddFunction(name, "_" + name)}}));
  }
  ProfilesBuilder::SampleInfo sample = Sample(1000, 10);
  sample.stack = builder_.AddStack(stack);
  builder_.AddSample(sample);
  EXPECT_TRUE(builder_.full());
  EXPECT_GT(builder_.dropped_strings(), 0u);
  size_t bound = builder_.bytes();
  ProfilesRequestPtr request = builder_.Finish();
  EXPECT_LE(request->ByteSizeLong(), bound);
  EXPECT_LT(request->ByteSizeLong(), 4u << 20);
  EXPECT_EQ(Profile(*request, 0).samples_size(), 1);
}

}  // namespace
}  // namespace tributary::otlp
