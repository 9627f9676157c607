#include "otlp/transcoder.h"

#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <span>

#include "base/hex.h"
#include "otlp/json.h"
#include "otlp/profiles_builder.h"
#include "otlp/transcode_parts.h"

namespace tributary::otlp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Hex(const std::string& bytes) {
  return ToHex(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

// Returns the index of a new string.
int AddString(const char* text, ProfilesRequest* request) {
  if (request->dictionary().string_table().empty()) request->mutable_dictionary()->add_string_table("");
  request->mutable_dictionary()->add_string_table(text);
  return request->dictionary().string_table_size() - 1;
}

int AddStack(std::initializer_list<int> locations, ProfilesRequest* request) {
  newest::ProfilesDictionary* tables = request->mutable_dictionary();
  if (tables->stack_table().empty()) tables->add_stack_table();
  newest::Stack* stack = tables->add_stack_table();
  for (const int location : locations) stack->add_location_indices(location);
  return tables->stack_table_size() - 1;
}

newest::Profile* AddProfile(ProfilesRequest* request) {
  newest::Profile* profile = request->add_resource_profiles()->add_scope_profiles()->add_profiles();
  profile->mutable_sample_type()->set_type_strindex(AddString("samples", request));
  return profile;
}

void AddSample(int stack, std::initializer_list<int64_t> values, std::initializer_list<uint64_t> times,
               newest::Profile* profile) {
  newest::Sample* sample = profile->add_samples();
  sample->set_stack_index(stack);
  for (const int64_t value : values) sample->add_values(value);
  for (const uint64_t time : times) sample->add_timestamps_unix_nano(time);
}

TEST(Generation, IsAVersionOfTheProtocol) {
  EXPECT_EQ(ParseGeneration("1.7"), Generation::k1_7);
  EXPECT_EQ(ParseGeneration("1.8"), Generation::k1_8);
  EXPECT_EQ(ParseGeneration("1.9"), Generation::k1_9);
  EXPECT_EQ(ParseGeneration("1.10"), Generation::kNewest);
  EXPECT_EQ(ParseGeneration("1.11"), Generation::kNewest);
  for (const char* text : {"", "1", "1.1", "1.6", "1.12", "1.70", "v1.9", "1.9 ", " 1.9", "1,9", "newest"}) {
    EXPECT_EQ(ParseGeneration(text), std::nullopt) << text;
  }
}

// The bytes are written by hand, from the schema of each version.
TEST(Transcoder, WritesTheFieldNumbersOfTheGeneration) {
  ProfilesRequest request;
  const int stack = AddStack({3}, &request);
  newest::Profile* profile = AddProfile(&request);
  profile->clear_sample_type();
  profile->set_profile_id("\x42");
  profile->add_attribute_indices(9);
  AddSample(stack, {5}, {}, profile);
  profile->mutable_samples(0)->add_attribute_indices(6);
  profile->mutable_samples(0)->set_link_index(7);
  const auto bytes = [](const auto& message) {
    return Hex(message.resource_profiles(0).scope_profiles(0).profiles(0).SerializeAsString());
  };
  EXPECT_EQ(bytes(request), "120a080112010618072201053a01425a0109");
  EXPECT_EQ(bytes(*Transcode_1_9(request)), "120a08011201051a010620073a01425a0109");
  EXPECT_EQ(bytes(*Transcode_1_8(request)), "120a08011201051a01062007420142620109");
  EXPECT_EQ(bytes(*Transcode_1_7(request)), "0a021801120a10011a010522010628071a0103520142720109");
}

TEST(Transcoder, AStackIsARangeOfTheProfilesLocationsIn1_7) {
  ProfilesRequest request;
  const int first = AddStack({5, 6, 7}, &request), second = AddStack({6, 7}, &request);
  newest::Profile* profile = AddProfile(&request);
  AddSample(second, {}, {10, 11}, profile);
  AddSample(first, {}, {12}, profile);
  AddSample(0, {}, {13}, profile);
  AddSample(second, {}, {14}, profile);
  AddSample(first, {4}, {}, AddProfile(&request));
  const auto old = Transcode_1_7(request);
  const v1_7::Profile& copy = old->resource_profiles(0).scope_profiles(0).profiles(0);
  EXPECT_THAT(copy.location_indices(), ElementsAre(6, 7, 5, 6, 7));
  std::vector<std::pair<int, int>> ranges;
  for (const v1_7::Sample& sample : copy.sample()) {
    ranges.emplace_back(sample.locations_start_index(), sample.locations_length());
  }
  EXPECT_THAT(ranges, ElementsAre(std::pair(0, 2), std::pair(2, 3), std::pair(0, 0), std::pair(0, 2)));
  EXPECT_THAT(old->resource_profiles(1).scope_profiles(0).profiles(0).location_indices(), ElementsAre(5, 6, 7));
}

TEST(Transcoder, EachSampleHasOneValueIn1_7) {
  ProfilesRequest request;
  newest::Profile* profile = AddProfile(&request);
  AddSample(0, {}, {10, 11, 11}, profile);
  AddSample(0, {8, 9}, {20, 21}, profile);
  AddSample(0, {7}, {30}, profile);
  AddSample(0, {6}, {}, profile);
  const auto old = Transcode_1_7(request);
  std::vector<std::string> samples;
  for (const v1_7::Sample& sample : old->resource_profiles(0).scope_profiles(0).profiles(0).sample()) {
    samples.push_back(ToJson(sample));
  }
  EXPECT_THAT(samples, ElementsAre(R"({"value":["3"],"timestampsUnixNano":["10","11","11"]})",
                                   R"({"value":["8"],"timestampsUnixNano":["20"]})",
                                   R"({"value":["9"],"timestampsUnixNano":["21"]})",
                                   R"({"value":["7"],"timestampsUnixNano":["30"]})", R"({"value":["6"]})"));
}

TEST(Transcoder, TypesAreDeltasBefore1_9) {
  ProfilesRequest request;
  newest::Profile* profile = AddProfile(&request);
  profile->mutable_period_type()->set_unit_strindex(profile->sample_type().type_strindex());
  EXPECT_THAT(ToJson(*Transcode_1_7(request)),
              HasSubstr(R"("sampleType":[{"typeStrindex":1,"aggregationTemporality":1}],)"
                        R"("periodType":{"unitStrindex":1,"aggregationTemporality":1})"));
  EXPECT_THAT(ToJson(*Transcode_1_8(request)),
              HasSubstr(R"("sampleType":{"typeStrindex":1,"aggregationTemporality":1},)"
                        R"("periodType":{"unitStrindex":1,"aggregationTemporality":1})"));
}

// Before 1.10, these indices do not exist: a receiver would see no keys and no values.
TEST(Transcoder, WritesStringsInsteadOfIndices) {
  ProfilesRequest request;
  const int key = AddString("k", &request), value = AddString("v", &request);
  AddProfile(&request);
  newest::ResourceProfiles* resource = request.mutable_resource_profiles(0);
  auto* attribute = resource->mutable_resource()->add_attributes();
  attribute->set_key_strindex(key);
  attribute->mutable_value()->mutable_array_value()->add_values()->set_string_value_strindex(value);
  auto* nested = resource->mutable_scope_profiles(0)->mutable_scope()->add_attributes();
  nested->set_key("plain");
  auto* inner = nested->mutable_value()->mutable_kvlist_value()->add_values();
  inner->set_key_strindex(key);
  inner->mutable_value()->set_string_value_strindex(99);  // out of range
  auto* entry = request.mutable_dictionary()->add_attribute_table();
  entry->set_key_strindex(key);
  entry->mutable_value()->set_string_value_strindex(value);
  for (const Generation generation : {Generation::k1_7, Generation::k1_8, Generation::k1_9}) {
    const std::string json = ToJson(*Transcode(request, generation));
    EXPECT_THAT(json,
                HasSubstr(R"({"attributes":[{"key":"k","value":{"arrayValue":{"values":[{"stringValue":"v"}]}}}]})"));
    EXPECT_THAT(
        json,
        HasSubstr(R"({"key":"plain","value":{"kvlistValue":{"values":[{"key":"k","value":{"stringValue":""}}]}}})"));
    EXPECT_THAT(json, HasSubstr(generation == Generation::k1_7
                                    ? R"("attributeTable":[{"key":"k","value":{"stringValue":"v"}}])"
                                    : R"("attributeTable":[{"keyStrindex":1,"value":{"stringValue":"v"}}])"));
  }
}

TEST(Transcoder, AUnitBelongsToAKeyIn1_7) {
  ProfilesRequest request;
  const int size = AddString("size", &request), time = AddString("time", &request);
  const int bytes = AddString("By", &request), seconds = AddString("s", &request), none = 0;
  for (const auto& [key, unit] : {std::pair(size, bytes), {time, seconds}, {size, bytes}, {time, none}}) {
    auto* attribute = request.mutable_dictionary()->add_attribute_table();
    attribute->set_key_strindex(key);
    attribute->set_unit_strindex(unit);
  }
  const auto old = Transcode_1_7(request);
  ASSERT_EQ(old->dictionary().attribute_units_size(), 1);  // the attributes with the key "time" differ
  EXPECT_EQ(old->dictionary().attribute_units(0).attribute_key_strindex(), size);
  EXPECT_EQ(old->dictionary().attribute_units(0).unit_strindex(), bytes);
}

TEST(Transcoder, AMappingSaysWhatIsKnownOfItIn1_7) {
  ProfilesRequest request;
  newest::ProfilesDictionary* tables = request.mutable_dictionary();
  const int file = AddString("a.c", &request);
  for (int i = 0; i < 4; ++i) tables->add_mapping_table()->set_file_offset(static_cast<uint64_t>(i));
  tables->add_function_table();
  tables->add_function_table()->set_filename_strindex(file);
  const auto add = [&](int mapping, std::initializer_list<std::pair<int, int>> lines) {
    newest::Location* location = tables->add_location_table();
    location->set_mapping_index(mapping);
    for (const auto& [function, number] : lines) {
      newest::Line* line = location->add_lines();
      line->set_function_index(function);
      line->set_line(number);
    }
  };
  add(0, {});
  add(1, {{1, 7}, {1, 8}});
  add(1, {});
  add(2, {{0, 0}});
  add(3, {});
  add(99, {{1, 1}});  // out of range
  const auto old = Transcode_1_7(request);
  EXPECT_EQ(
      ToJson(old->dictionary().mapping_table(1)),
      R"({"fileOffset":"1","hasFunctions":true,"hasFilenames":true,"hasLineNumbers":true,"hasInlineFrames":true})");
  EXPECT_EQ(ToJson(old->dictionary().mapping_table(2)), R"({"fileOffset":"2","hasFunctions":true})");
  EXPECT_EQ(ToJson(old->dictionary().mapping_table(3)), R"({"fileOffset":"3"})");
  EXPECT_FALSE(old->dictionary().location_table(0).has_mapping_index());
}

// Makes a request whose layout in 1.7 is much larger than the newest one. `fill` adds samples.
template <typename Fill>
void CheckSizeIn1_7(Fill fill) {
  ProfilesBuilder newest_builder({}), builder({.generation = Generation::k1_7});
  fill(newest_builder);
  fill(builder);
  const size_t newest_bound = newest_builder.bytes(), bound = builder.bytes();
  const size_t size = Transcode(*builder.Finish(), Generation::k1_7)->ByteSizeLong();
  EXPECT_GT(size, newest_bound);
  EXPECT_LE(size, bound);
}

TEST(Transcoder, TheBuilderCountsStacksOfEachProfileIn1_7) {
  CheckSizeIn1_7([](ProfilesBuilder& builder) {
    std::vector<LocationIndex> stack;
    for (uint64_t i = 0; i < 1000; ++i) stack.push_back(builder.AddLocation(FrameKind::kNative, {}, i, {}));
    for (int i = 0; i < 200; ++i) {
      builder.AddSample({.resource = builder.AddResource({{"container.id", std::to_string(i)}}),
                         .stack = builder.AddStack(stack),
                         .value = 1});
    }
  });
}

TEST(Transcoder, TheBuilderCountsKeysOfEachAttributeIn1_7) {
  const std::string key(10'000, 'k');
  CheckSizeIn1_7([&](ProfilesBuilder& builder) {
    for (int i = 0; i < 50; ++i) {
      builder.AddSample({.resource = builder.AddResource({}),
                         .attributes = builder.AddOwn({}, {{key, std::to_string(i)}}),
                         .value = 1});
    }
  });
}

TEST(Transcoder, TheBuilderCountsASampleForEachTimeStampIn1_7) {
  CheckSizeIn1_7([](ProfilesBuilder& builder) {
    Attributes own;
    for (int i = 0; i < 50; ++i) own.push_back({"k" + std::to_string(i), "v"});
    for (int64_t i = 0; i < 2000; ++i) {
      builder.AddSample({.resource = builder.AddResource({}),
                         .attributes = builder.AddOwn({}, own),
                         .type = builder.AddType({"off_cpu", "nanoseconds"}),
                         .time = UnixNs{1'700'000'000'000'000'000 + i},
                         .value = 1'000'000});
    }
  });
}

TEST(Transcoder, AnEmptyRequestStaysEmpty) {
  for (const Generation generation : {Generation::k1_7, Generation::k1_8, Generation::k1_9}) {
    EXPECT_EQ(ToJson(*Transcode({}, generation)), R"({"dictionary":{}})");
  }
}

}  // namespace
}  // namespace tributary::otlp
