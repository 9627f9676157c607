#include "otlp/table_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "otlp/profiles_text.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

using ::testing::ElementsAre;

class TableOrderTest : public testing::Test {
 protected:
  // Each address has a function of its own.
  LocationIndex Location(std::string_view file, uint64_t address) {
    const MappingIndex mapping = builder_.AddMapping(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, file), file);
    const FunctionIndex function = builder_.AddFunction("f" + std::to_string(address), "");
    return builder_.AddLocation(FrameKind::kNative, mapping, address, {{function, 7}});
  }
  void AddSample(const std::vector<LocationIndex>& leaf_first) {
    builder_.AddSample({.resource = builder_.AddResource({{"host.name", "h"}}),
                        .attributes = builder_.AddThread({.thread_name = "t"}),
                        .stack = builder_.AddStack(leaf_first),
                        .time = UnixNs{1'700'000'000'000'000'000},
                        .value = 1'000'000});
  }
  static std::string Text(const ProfilesRequest& request) {
    return FormatProfiles(request, {.layout = TextLayout::kCollector});
  }

  ProfilesBuilder builder_{{}};
};

TEST_F(TableOrderTest, KeepsTheContent) {
  const LocationIndex outer = Location("a", 900), other = Location("b", 5);
  AddSample({Location("a", 300), outer});
  AddSample({Location("a", 200), other});
  AddSample({Location("b", 1), outer});
  AddSample({});
  const ProfilesRequestPtr request = builder_.Finish();
  const std::string before = Text(*request);
  const ProfilesRequest old = *request;
  OrderTables(request.get());
  EXPECT_EQ(Text(*request), before);
  EXPECT_NE(request->SerializeAsString(), old.SerializeAsString());
  EXPECT_EQ(request->ByteSizeLong(), old.ByteSizeLong());

  const auto& tables = request->dictionary();
  std::vector<uint64_t> addresses;
  for (const auto& location : tables.location_table()) addresses.push_back(location.address());
  EXPECT_THAT(addresses, ElementsAre(0, 200, 300, 900, 1, 5));
  std::vector<std::string> functions;
  for (const auto& function : tables.function_table()) {
    functions.push_back(tables.string_table(function.name_strindex()));
  }
  EXPECT_THAT(functions, ElementsAre("", "f200", "f300", "f900", "f1", "f5"));
  const auto& strings = tables.string_table();
  EXPECT_EQ(strings[0], "");
  EXPECT_THAT(std::vector(strings.end() - 5, strings.end()), ElementsAre("f200", "f300", "f900", "f1", "f5"));
  std::vector<std::vector<int>> stacks;
  for (const auto& stack : tables.stack_table()) {
    stacks.emplace_back(stack.location_indices().begin(), stack.location_indices().end());
  }
  EXPECT_THAT(stacks, ElementsAre(ElementsAre(), ElementsAre(2, 3), ElementsAre(4, 3), ElementsAre(1, 5)));
}

TEST_F(TableOrderTest, AgainChangesNothing) {
  for (uint64_t i = 0; i < 50; ++i) AddSample({Location("a", i * 37 % 50), Location("b", i * 11 % 7)});
  const ProfilesRequestPtr request = builder_.Finish();
  OrderTables(request.get());
  const std::string once = request->SerializeAsString();
  OrderTables(request.get());
  EXPECT_EQ(request->SerializeAsString(), once);
}

// Also in places where ProfilesBuilder has no strings.
TEST(TableOrder, FixesAllStrings) {
  ProfilesRequest request;
  auto* tables = request.mutable_dictionary();
  for (const char* text : {"", "name", "other"}) tables->add_string_table(text);
  tables->add_function_table();
  tables->add_function_table()->set_name_strindex(1);
  tables->mutable_function_table(1)->set_filename_strindex(2);
  tables->add_mapping_table()->set_filename_strindex(1);
  auto* attribute = tables->add_attribute_table();
  attribute->set_key_strindex(1);
  attribute->set_unit_strindex(2);
  attribute->mutable_value()->mutable_array_value()->add_values()->set_string_value_strindex(2);
  auto* resource = request.add_resource_profiles();
  auto* of_resource = resource->mutable_resource()->add_attributes();
  of_resource->set_key_strindex(2);
  of_resource->mutable_value()->mutable_kvlist_value()->add_values()->set_key_strindex(1);
  auto* scope = resource->add_scope_profiles();
  scope->mutable_scope()->add_attributes()->mutable_value()->set_string_value_strindex(1);
  auto* profile = scope->add_profiles();
  profile->mutable_sample_type()->set_type_strindex(2);
  profile->mutable_period_type()->set_unit_strindex(1);
  OrderTables(&request);
  EXPECT_THAT(tables->string_table(), ElementsAre("", "other", "name"));
  EXPECT_EQ(tables->function_table(1).name_strindex(), 2);
  EXPECT_EQ(tables->function_table(1).filename_strindex(), 1);
  EXPECT_EQ(tables->mapping_table(0).filename_strindex(), 2);
  EXPECT_EQ(attribute->key_strindex(), 2);
  EXPECT_EQ(attribute->unit_strindex(), 1);
  EXPECT_EQ(attribute->value().array_value().values(0).string_value_strindex(), 1);
  EXPECT_EQ(of_resource->key_strindex(), 1);
  EXPECT_EQ(of_resource->value().kvlist_value().values(0).key_strindex(), 2);
  EXPECT_EQ(scope->scope().attributes(0).value().string_value_strindex(), 2);
  EXPECT_EQ(profile->sample_type().type_strindex(), 1);
  EXPECT_EQ(profile->period_type().unit_strindex(), 2);
}

TEST(TableOrder, IndicesOutOfRangeBecomeNotSet) {
  ProfilesRequest request;
  OrderTables(&request);  // without tables
  auto* tables = request.mutable_dictionary();
  tables->add_function_table();
  tables->add_location_table();
  auto* location = tables->add_location_table();
  location->add_lines()->set_function_index(5);
  location->add_lines()->set_function_index(-1);
  tables->add_stack_table();
  auto* stack = tables->add_stack_table();
  for (const int index : {1, 2, -7}) stack->add_location_indices(index);
  auto* profile = request.add_resource_profiles()->add_scope_profiles()->add_profiles();
  for (const int index : {1, 2, -1}) profile->add_samples()->set_stack_index(index);
  OrderTables(&request);
  EXPECT_EQ(tables->location_table(1).lines(0).function_index(), 0);
  EXPECT_EQ(tables->location_table(1).lines(1).function_index(), 0);
  EXPECT_THAT(tables->stack_table(1).location_indices(), ElementsAre(1, 0, 0));
  EXPECT_EQ(profile->samples(0).stack_index(), 1);
  EXPECT_EQ(profile->samples(1).stack_index(), 0);
  EXPECT_EQ(profile->samples(2).stack_index(), 0);
}

}  // namespace
}  // namespace tributary::otlp
