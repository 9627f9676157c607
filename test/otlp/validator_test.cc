#include "test/otlp/validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::profiles::v1development;

// Returns a valid request with an element in every table and a value in every optional field.
ProfilesRequest ValidRequest() {
  ProfilesRequest request;
  auto* d = request.mutable_dictionary();
  for (const char* text :
       {"", "samples", "count", "cpu", "nanoseconds", "profile.frame.type", "process.executable.build_id.gnu",
        "thread.name", "main", "_Zmain", "main.c", "/bin/x", "By", "host.name", "node-1"}) {
    d->add_string_table(text);
  }
  auto add_attribute = [&](int key, const char* value, int unit) {
    auto* attribute = d->add_attribute_table();
    attribute->set_key_strindex(key);
    if (key != 0) attribute->mutable_value()->set_string_value(value);
    attribute->set_unit_strindex(unit);
  };
  add_attribute(0, "", 0);
  add_attribute(5, "native", 0);
  add_attribute(6, "abcdef", 0);
  add_attribute(7, "worker", 0);
  add_attribute(7, "other", 12);
  d->add_mapping_table();
  auto* mapping = d->add_mapping_table();
  mapping->set_memory_start(0x1000);
  mapping->set_memory_limit(0x2000);
  mapping->set_filename_strindex(11);
  mapping->add_attribute_indices(2);
  d->add_function_table();
  auto* function = d->add_function_table();
  function->set_name_strindex(8);
  function->set_system_name_strindex(9);
  function->set_filename_strindex(10);
  function->set_start_line(3);
  d->add_location_table();
  for (uint64_t address : {0x1100, 0x1200}) {
    auto* location = d->add_location_table();
    location->set_mapping_index(1);
    location->set_address(address);
    location->add_attribute_indices(1);
    auto* line = location->add_lines();
    line->set_function_index(1);
    line->set_line(7);
    line->set_column(2);
  }
  d->add_stack_table();
  d->add_stack_table()->add_location_indices(1);
  auto* stack = d->add_stack_table();
  stack->add_location_indices(2);
  stack->add_location_indices(1);
  d->add_link_table();
  auto* link = d->add_link_table();
  link->set_trace_id("0123456789abcdef");
  link->set_span_id("01234567");

  for (const char* container : {"c1", "c2"}) {
    auto* resource = request.add_resource_profiles();
    auto* id = resource->mutable_resource()->add_attributes();
    id->set_key("container.id");
    id->mutable_value()->set_string_value(container);
    auto* host = resource->mutable_resource()->add_attributes();
    host->set_key_strindex(13);
    host->mutable_value()->set_string_value_strindex(14);
    auto* scope = resource->add_scope_profiles();
    scope->mutable_scope()->set_name("test");
    auto* profile = scope->add_profiles();
    profile->mutable_sample_type()->set_type_strindex(1);
    profile->mutable_sample_type()->set_unit_strindex(2);
    profile->mutable_period_type()->set_type_strindex(3);
    profile->mutable_period_type()->set_unit_strindex(4);
    profile->set_period(10'000'000);
    profile->set_time_unix_nano(1000);
    profile->set_duration_nano(100);
    profile->set_profile_id("0123456789abcdef");
    profile->set_original_payload_format("pprof");
    profile->set_original_payload("bytes");
    for (int i = 1; i <= 2; ++i) {
      auto* sample = profile->add_samples();
      sample->set_stack_index(i);
      sample->add_attribute_indices(2 + i);
      sample->set_link_index(1);
      sample->add_timestamps_unix_nano(1000);
      sample->add_timestamps_unix_nano(1099);
    }
  }
  return request;
}

// Short names for the parts that the defects below break.
struct Target {
  ProfilesRequest& request;
  proto::ProfilesDictionary* d = request.mutable_dictionary();
  proto::ResourceProfiles* resource = request.mutable_resource_profiles(0);
  proto::ScopeProfiles* scope = resource->mutable_scope_profiles(0);
  proto::Profile* profile = scope->mutable_profiles(0);
  proto::Sample* sample = profile->mutable_samples(0);
  proto::Mapping* mapping = d->mutable_mapping_table(1);
  proto::Location* location = d->mutable_location_table(1);
  proto::Line* line = location->mutable_lines(0);
  proto::Function* function = d->mutable_function_table(1);
};

struct Defect {
  const char* rule;
  std::function<void(Target)> plant;
};

template <typename Message>
void AddUnknownField(Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(99, 1);
}

void ClearMeasures(proto::Sample* sample) {
  sample->clear_values();
  sample->clear_timestamps_unix_nano();
}

const Defect kDefects[] = {
    // Lists that must not be empty.
    {"request.no_resources", [](Target t) { t.request.clear_resource_profiles(); }},
    {"request.no_dictionary", [](Target t) { t.request.clear_dictionary(); }},
    {"request.too_large", [](Target t) { t.profile->set_original_payload(std::string(5 << 20, 'x')); }},
    {"resource.no_scopes", [](Target t) { t.resource->clear_scope_profiles(); }},
    {"scope.no_profiles", [](Target t) { t.scope->clear_profiles(); }},
    {"profile.no_samples", [](Target t) { t.profile->clear_samples(); }},
    // Tables.
    {"mapping_table.empty", [](Target t) { t.d->clear_mapping_table(); }},
    {"location_table.empty", [](Target t) { t.d->clear_location_table(); }},
    {"function_table.empty", [](Target t) { t.d->clear_function_table(); }},
    {"link_table.empty", [](Target t) { t.d->clear_link_table(); }},
    {"string_table.empty", [](Target t) { t.d->clear_string_table(); }},
    {"attribute_table.empty", [](Target t) { t.d->clear_attribute_table(); }},
    {"stack_table.empty", [](Target t) { t.d->clear_stack_table(); }},
    {"mapping_table.first_not_zero", [](Target t) { t.d->mutable_mapping_table(0)->set_memory_limit(1); }},
    {"location_table.first_not_zero", [](Target t) { t.d->mutable_location_table(0)->set_address(1); }},
    {"function_table.first_not_zero", [](Target t) { t.d->mutable_function_table(0)->set_name_strindex(8); }},
    {"link_table.first_not_zero", [](Target t) { t.d->mutable_link_table(0)->set_span_id("01234567"); }},
    {"string_table.first_not_zero", [](Target t) { *t.d->mutable_string_table(0) = "x"; }},
    {"attribute_table.first_not_zero", [](Target t) { t.d->mutable_attribute_table(0)->set_key_strindex(7); }},
    {"stack_table.first_not_zero", [](Target t) { t.d->mutable_stack_table(0)->add_location_indices(1); }},
    {"mapping_table.duplicate", [](Target t) { *t.d->add_mapping_table() = proto::Mapping(t.d->mapping_table(1)); }},
    {"location_table.duplicate",
     [](Target t) { *t.d->add_location_table() = proto::Location(t.d->location_table(1)); }},
    {"function_table.duplicate",
     [](Target t) { *t.d->add_function_table() = proto::Function(t.d->function_table(1)); }},
    {"link_table.duplicate", [](Target t) { *t.d->add_link_table() = proto::Link(t.d->link_table(1)); }},
    {"string_table.duplicate", [](Target t) { t.d->add_string_table("main"); }},
    {"attribute_table.duplicate",
     [](Target t) { *t.d->add_attribute_table() = proto::KeyValueAndUnit(t.d->attribute_table(1)); }},
    {"stack_table.duplicate", [](Target t) { *t.d->add_stack_table() = proto::Stack(t.d->stack_table(1)); }},
    {"mapping_table.orphan",
     [](Target t) {
       for (int i : {1, 2}) t.d->mutable_location_table(i)->clear_mapping_index();
     }},
    {"location_table.orphan", [](Target t) { t.d->mutable_stack_table(2)->mutable_location_indices()->Set(0, 1); }},
    {"function_table.orphan",
     [](Target t) {
       for (int i : {1, 2}) t.d->mutable_location_table(i)->clear_lines();
     }},
    {"link_table.orphan",
     [](Target t) {
       for (auto& resource : *t.request.mutable_resource_profiles()) {
         for (auto& sample : *resource.mutable_scope_profiles(0)->mutable_profiles(0)->mutable_samples()) {
           sample.clear_link_index();
         }
       }
     }},
    {"string_table.orphan", [](Target t) { t.d->add_string_table("nobody"); }},
    {"attribute_table.orphan",
     [](Target t) {
       for (int i : {1, 2}) t.d->mutable_location_table(i)->clear_attribute_indices();
     }},
    {"stack_table.orphan", [](Target t) { t.d->add_stack_table()->add_location_indices(2); }},
    // References.
    {"sample.stack_index.range", [](Target t) { t.sample->set_stack_index(3); }},
    {"sample.link_index.range", [](Target t) { t.sample->set_link_index(-1); }},
    {"sample.attribute_indices.range", [](Target t) { t.sample->set_attribute_indices(0, 5); }},
    {"profile.attribute_indices.range", [](Target t) { t.profile->add_attribute_indices(99); }},
    {"mapping.attribute_indices.range", [](Target t) { t.mapping->add_attribute_indices(-7); }},
    {"location.attribute_indices.range", [](Target t) { t.location->add_attribute_indices(5); }},
    {"location.mapping_index.range", [](Target t) { t.location->set_mapping_index(2); }},
    {"line.function_index.range", [](Target t) { t.line->set_function_index(2); }},
    {"stack.location_indices.range", [](Target t) { t.d->mutable_stack_table(1)->add_location_indices(3); }},
    {"mapping.filename_strindex.range", [](Target t) { t.mapping->set_filename_strindex(15); }},
    {"function.name_strindex.range", [](Target t) { t.function->set_name_strindex(15); }},
    {"function.system_name_strindex.range", [](Target t) { t.function->set_system_name_strindex(-1); }},
    {"function.filename_strindex.range", [](Target t) { t.function->set_filename_strindex(1000); }},
    {"profile.sample_type.type_strindex.range",
     [](Target t) { t.profile->mutable_sample_type()->set_type_strindex(15); }},
    {"profile.sample_type.unit_strindex.range",
     [](Target t) { t.profile->mutable_sample_type()->set_unit_strindex(15); }},
    {"profile.period_type.type_strindex.range",
     [](Target t) { t.profile->mutable_period_type()->set_type_strindex(15); }},
    {"profile.period_type.unit_strindex.range",
     [](Target t) { t.profile->mutable_period_type()->set_unit_strindex(15); }},
    {"attribute_table.key_strindex.range", [](Target t) { t.d->mutable_attribute_table(1)->set_key_strindex(15); }},
    {"attribute_table.unit_strindex.range", [](Target t) { t.d->mutable_attribute_table(1)->set_unit_strindex(-2); }},
    {"attribute.key_strindex.range",
     [](Target t) { t.resource->mutable_resource()->mutable_attributes(1)->set_key_strindex(15); }},
    {"any_value.string_value_strindex.range",
     [](Target t) {
       t.resource->mutable_resource()->mutable_attributes(1)->mutable_value()->set_string_value_strindex(15);
     }},
    // Attributes.
    {"attribute.key_twice", [](Target t) { t.resource->mutable_resource()->mutable_attributes(1)->set_key("x"); }},
    {"attribute.no_key", [](Target t) { t.scope->mutable_scope()->add_attributes(); }},
    {"attribute_table.no_key", [](Target t) { t.d->mutable_attribute_table(1)->clear_key_strindex(); }},
    {"resource.attribute_repeated",
     [](Target t) { t.resource->mutable_resource()->add_attributes()->set_key("host.name"); }},
    {"scope.attribute_repeated",
     [](Target t) {
       for (int i = 0; i < 2; ++i) t.scope->mutable_scope()->add_attributes()->set_key("k");
     }},
    {"kvlist.attribute_repeated",
     [](Target t) {
       auto* list = t.d->mutable_attribute_table(1)->mutable_value()->mutable_kvlist_value();
       for (int i = 0; i < 2; ++i) list->add_values()->set_key("k");
     }},
    {"sample.attribute_repeated", [](Target t) { t.sample->add_attribute_indices(4); }},
    {"profile.attribute_repeated",
     [](Target t) {
       for (int i : {3, 4}) t.profile->add_attribute_indices(i);
     }},
    {"mapping.attribute_repeated", [](Target t) { t.mapping->add_attribute_indices(2); }},
    {"location.attribute_repeated", [](Target t) { t.location->add_attribute_indices(1); }},
    {"sample.attribute_not_set", [](Target t) { t.sample->add_attribute_indices(0); }},
    {"profile.attribute_not_set", [](Target t) { t.profile->add_attribute_indices(0); }},
    {"mapping.attribute_not_set", [](Target t) { t.mapping->add_attribute_indices(0); }},
    {"location.attribute_not_set", [](Target t) { t.location->add_attribute_indices(0); }},
    // Resources.
    {"resource.repeated",
     [](Target t) { *t.request.mutable_resource_profiles(1)->mutable_resource() = t.resource->resource(); }},
    {"resource.container_repeated",
     [](Target t) {
       auto* resource = t.request.mutable_resource_profiles(1)->mutable_resource();
       resource->mutable_attributes(0)->mutable_value()->set_string_value("c1");
       resource->mutable_attributes()->RemoveLast();
     }},
    // Profiles.
    {"profile.no_sample_type", [](Target t) { t.profile->clear_sample_type(); }},
    {"profile.period_without_type", [](Target t) { t.profile->clear_period_type(); }},
    {"profile.id_length", [](Target t) { t.profile->set_profile_id("0123"); }},
    {"profile.id_zero", [](Target t) { t.profile->set_profile_id(std::string(16, '\0')); }},
    {"profile.payload_without_format", [](Target t) { t.profile->clear_original_payload_format(); }},
    {"profile.format_without_payload", [](Target t) { t.profile->clear_original_payload(); }},
    {"profile.mixed_shapes",
     [](Target t) {
       for (int64_t value : {1, 2}) t.sample->add_values(value);
     }},
    // Samples.
    {"sample.no_measure", [](Target t) { ClearMeasures(t.sample); }},
    {"sample.lengths_differ", [](Target t) { t.sample->add_values(1); }},
    {"sample.values_without_timestamps",
     [](Target t) {
       ClearMeasures(t.sample);
       for (int64_t value : {1, 2}) t.sample->add_values(value);
     }},
    {"sample.timestamp_before_start", [](Target t) { t.sample->set_timestamps_unix_nano(0, 999); }},
    {"sample.timestamp_after_end", [](Target t) { t.sample->set_timestamps_unix_nano(1, 1100); }},
    {"sample.not_merged", [](Target t) { *t.profile->add_samples() = proto::Sample(*t.sample); }},
    // Elements of the tables.
    {"mapping.range_reversed", [](Target t) { t.mapping->set_memory_limit(0xfff); }},
    {"mapping.no_build_id", [](Target t) { t.mapping->clear_attribute_indices(); }},
    {"location.address_outside_mapping", [](Target t) { t.location->set_address(0x2001); }},
    {"line.negative_line", [](Target t) { t.line->set_line(-1); }},
    {"line.negative_column", [](Target t) { t.line->set_column(-1); }},
    {"function.no_string",
     [](Target t) {
       t.function->clear_name_strindex();
       t.function->clear_system_name_strindex();
       t.function->clear_filename_strindex();
     }},
    {"function.negative_start_line", [](Target t) { t.function->set_start_line(-1); }},
    {"stack.location_not_set", [](Target t) { t.d->mutable_stack_table(1)->add_location_indices(0); }},
    {"link.trace_id_length", [](Target t) { t.d->mutable_link_table(1)->set_trace_id("0123"); }},
    {"link.span_id_length", [](Target t) { t.d->mutable_link_table(1)->clear_span_id(); }},
    // Bytes.
    {"string.not_utf8", [](Target t) { *t.d->mutable_string_table(8) = "\xff\xfe"; }},
    {"message.unknown_field", [](Target t) { AddUnknownField(t.sample); }},
};

std::set<std::string> Rules(const std::vector<Finding>& findings) {
  std::set<std::string> rules;
  for (const Finding& finding : findings) rules.insert(finding.rule);
  return rules;
}

TEST(ProfilesValidator, FindsNothingInAValidRequest) {
  std::vector<Finding> findings = ValidateProfiles(ValidRequest());
  EXPECT_TRUE(findings.empty()) << DescribeFindings(findings);
  EXPECT_TRUE(ValidateProfilesBytes(ValidRequest().SerializeAsString()).empty());
}

TEST(ProfilesValidator, FindsEveryPlantedDefectByItsOwnRule) {
  std::set<std::string> planted;
  for (const Defect& defect : kDefects) {
    EXPECT_TRUE(planted.insert(defect.rule).second) << defect.rule << " is planted twice";
    ProfilesRequest request = ValidRequest();
    defect.plant(Target{request});
    std::vector<Finding> findings = ValidateProfiles(request);
    EXPECT_THAT(Rules(findings), ::testing::Contains(defect.rule)) << DescribeFindings(findings);
  }
  EXPECT_GE(planted.size(), 90u);
}

TEST(ProfilesValidator, TakesALinkOfZeroBytesForUnset) {
  ProfilesRequest request = ValidRequest();
  request.mutable_dictionary()->mutable_link_table(0)->set_trace_id(std::string(16, '\0'));
  request.mutable_dictionary()->mutable_link_table(0)->set_span_id(std::string(8, '\0'));
  EXPECT_TRUE(ValidateProfiles(request).empty());
}

TEST(ProfilesValidator, TakesEachOfTheThreeShapes) {
  for (int shape = 0; shape < 2; ++shape) {
    ProfilesRequest request = ValidRequest();
    for (auto& sample : *Target{request}.profile->mutable_samples()) {
      if (shape == 0) sample.clear_timestamps_unix_nano();
      for (int i = 0; i < (shape == 0 ? 1 : 2); ++i) sample.add_values(5);
    }
    std::vector<Finding> findings = ValidateProfiles(request);
    EXPECT_TRUE(findings.empty()) << DescribeFindings(findings);
  }
}

// 1.9 used other field numbers in a sample. So a sample of 1.9 is read with wrong fields.
TEST(ProfilesValidator, NoticesTheOldFieldNumbers) {
  // Sample of 1.9: 1 stack_index, 2 values, 3 attribute_indices, 4 link_index, 5 time stamps.
  std::string old_sample("\x08\x01\x12\x02\x90\x4e", 6);  // stack 1, one value of 10,000
  ProfilesRequest request = ValidRequest();
  ASSERT_TRUE(Target{request}.sample->ParseFromString(old_sample));
  EXPECT_THAT(Rules(ValidateProfiles(request)),
              ::testing::IsSupersetOf({"sample.attribute_indices.range", "sample.no_measure"}));
}

TEST(ProfilesValidator, CallsOtherBytesNotProtobuf) {
  EXPECT_THAT(Rules(ValidateProfilesBytes("\xff\xff\xff\xff")), ::testing::ElementsAre("message.not_protobuf"));
}

TEST(ProfilesValidator, StopsAtItsCap) {
  ProfilesRequest request = ValidRequest();
  for (int i = 0; i < 5000; ++i) Target{request}.sample->add_attribute_indices(77);
  EXPECT_EQ(ValidateProfiles(request).size(), kFindingsMax);
}

}  // namespace
}  // namespace tributary::otlp
