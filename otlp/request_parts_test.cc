#include "otlp/request_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Adds a sample of a service at a stack of one frame in a file of its own.
void AddSample(ProfilesBuilder& builder, const std::string& service, const std::string& function) {
  ProfilesBuilder::SampleInfo sample;
  Attributes resource = {{"host.name", "h"}};
  if (!service.empty()) resource.push_back({"service.name", service});
  sample.resource = builder.AddResource(resource);
  sample.attributes = builder.AddThread({.thread_name = "thread of " + function, .pid = Pid{5}, .tid = Tid{6}});
  const ExecutableId id = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, function);
  const MappingIndex mapping = builder.AddMapping(id, "/bin/" + function);
  sample.stack = builder.AddStack(std::vector<LocationIndex>{
      builder.AddLocation(FrameKind::kNative, mapping, 0x10, {{builder.AddFunction(function, "")}})});
  sample.link = builder.AddLink(std::string(16, function[0]), std::string(8, function[0]));
  sample.time = UnixNs{1'700'000'000'000'000'000};
  sample.value = 1'000'000;
  builder.AddSample(sample);
}

std::vector<std::string> FunctionsOf(const ProfilesRequest& request) {
  std::vector<std::string> names;
  const auto& tables = request.dictionary();
  for (const auto& resource : request.resource_profiles()) {
    for (const auto& profile : resource.scope_profiles(0).profiles()) {
      for (const auto& sample : profile.samples()) {
        const auto& location = tables.location_table(tables.stack_table(sample.stack_index()).location_indices(0));
        names.push_back(tables.string_table(tables.function_table(location.lines(0).function_index()).name_strindex()));
      }
    }
  }
  return names;
}

std::vector<std::pair<std::string, std::vector<int>>> Divided(const ProfilesRequest& request, std::string_view key) {
  std::vector<std::pair<std::string, std::vector<int>>> parts;
  for (const RequestPart& part : PartsOf(request, key)) parts.emplace_back(part.text, part.resources);
  return parts;
}

bool Contains(const ProfilesRequest& request, std::string_view text) {
  const auto& strings = request.dictionary().string_table();
  return std::any_of(strings.begin(), strings.end(), [&](const std::string& s) { return s.find(text) != s.npos; });
}

TEST(RequestParts, AreInTheOrderOfTheirTexts) {
  ProfilesRequest request;
  EXPECT_THAT(PartsOf(request, "service.name"), IsEmpty());
  const auto add = [&](const char* key, const char* value) {
    auto* attribute = request.add_resource_profiles()->mutable_resource()->add_attributes();
    attribute->set_key(key);
    attribute->mutable_value()->set_string_value(value);
  };
  add("service.name", "b");
  add("other", "b");
  add("service.name", "a");
  add("service.name", "b");
  add("service.name", "");
  EXPECT_THAT(
      Divided(request, "service.name"),
      ElementsAre(std::pair("b", std::vector{0, 3}), std::pair("", std::vector{1, 4}), std::pair("a", std::vector{2})));
  EXPECT_THAT(Divided(request, "missing"), ElementsAre(std::pair("", std::vector{0, 1, 2, 3, 4})));
}

TEST(RequestParts, ReadsKeysAndValuesInTheDictionary) {
  ProfilesRequest request;
  for (const char* text : {"", "service.name", "a"}) request.mutable_dictionary()->add_string_table(text);
  auto* attribute = request.add_resource_profiles()->mutable_resource()->add_attributes();
  attribute->set_key_strindex(1);
  attribute->mutable_value()->set_string_value_strindex(2);
  EXPECT_THAT(Divided(request, "service.name"), ElementsAre(std::pair("a", std::vector{0})));
  attribute->mutable_value()->set_string_value_strindex(99);  // out of range
  EXPECT_THAT(Divided(request, "service.name"), ElementsAre(std::pair("", std::vector{0})));
  attribute->set_key_strindex(-1);
  EXPECT_THAT(Divided(request, "service.name"), ElementsAre(std::pair("", std::vector{0})));
}

TEST(RequestParts, ACopyHasOnlyWhatItUses) {
  ProfilesBuilder builder({.scope_version = "0"});
  AddSample(builder, "a", "first");
  AddSample(builder, "b", "middle");
  AddSample(builder, "a", "third");
  AddSample(builder, "", "fourth");
  const ProfilesRequestPtr request = builder.Finish();
  std::vector<std::vector<std::string>> functions;
  for (const RequestPart& part : PartsOf(*request, "service.name")) {
    const ProfilesRequestPtr copy = CopyPart(*request, part.resources);
    functions.push_back(FunctionsOf(*copy));
    for (const char* function : {"first", "middle", "third", "fourth"}) {
      const bool is_in = std::ranges::find(functions.back(), function) != functions.back().end();
      EXPECT_EQ(Contains(*copy, function), is_in) << function;
    }
    const size_t entries = functions.back().size() + 1;  // and the entry "not set"
    EXPECT_THAT(copy->dictionary().function_table(), SizeIs(entries));
    EXPECT_THAT(copy->dictionary().mapping_table(), SizeIs(entries));
    EXPECT_THAT(copy->dictionary().location_table(), SizeIs(entries));
    EXPECT_THAT(copy->dictionary().stack_table(), SizeIs(entries));
    EXPECT_THAT(copy->dictionary().link_table(), SizeIs(entries));
  }
  EXPECT_THAT(functions,
              ElementsAre(UnorderedElementsAre("first", "third"), ElementsAre("middle"), ElementsAre("fourth")));
}

TEST(RequestParts, ACopyOfAllIsTheSameRequest) {
  ProfilesBuilder builder({.scope_version = "0"});
  for (const char* function : {"f", "g"}) AddSample(builder, "a", function);
  const ProfilesRequestPtr request = builder.Finish();
  const ProfilesRequestPtr once = CopyPart(*request, std::vector{0});
  EXPECT_EQ(FunctionsOf(*once), FunctionsOf(*request));
  EXPECT_EQ(CopyPart(*once, std::vector{0})->SerializeAsString(), once->SerializeAsString());
}

TEST(RequestParts, IndicesOutOfRangeBecomeNotSet) {
  ProfilesRequest request;
  request.mutable_dictionary()->add_string_table("");
  auto* resource = request.add_resource_profiles();
  auto* attribute = resource->mutable_resource()->add_attributes();
  attribute->set_key_strindex(7);
  attribute->mutable_value()->mutable_array_value()->add_values()->set_string_value_strindex(-7);
  auto* profile = resource->add_scope_profiles()->add_profiles();
  profile->mutable_sample_type()->set_type_strindex(INT32_MAX);
  profile->add_attribute_indices(1);
  auto* sample = profile->add_samples();
  sample->set_stack_index(3);
  sample->set_link_index(INT32_MIN);
  const ProfilesRequestPtr copy = CopyPart(request, std::vector{0});
  const auto& copied = copy->resource_profiles(0);
  EXPECT_EQ(copied.resource().attributes(0).key_strindex(), 0);
  EXPECT_EQ(copied.resource().attributes(0).value().array_value().values(0).string_value_strindex(), 0);
  EXPECT_EQ(copied.scope_profiles(0).profiles(0).sample_type().type_strindex(), 0);
  EXPECT_EQ(copied.scope_profiles(0).profiles(0).attribute_indices(0), 0);
  EXPECT_EQ(copied.scope_profiles(0).profiles(0).samples(0).stack_index(), 0);
  EXPECT_EQ(copied.scope_profiles(0).profiles(0).samples(0).link_index(), 0);
  EXPECT_THAT(copy->dictionary().stack_table(), SizeIs(1));
}

}  // namespace
}  // namespace tributary::otlp
