#include "otlp/json.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceRequest;
using ::opentelemetry::proto::common::v1::AnyValue;

TEST(OtlpJson, WritesTheFormOfTheProtocol) {
  ExportProfilesServiceRequest request;
  auto* profile = request.add_resource_profiles()->add_scope_profiles()->add_profiles();
  profile->set_time_unix_nano(std::numeric_limits<uint64_t>::max());
  profile->set_profile_id(std::string(16, '\x0a'));
  profile->add_samples()->add_values(-1);
  auto* dictionary = request.mutable_dictionary();
  dictionary->add_link_table();
  dictionary->add_link_table()->set_trace_id(std::string("\x01\xff", 2));
  dictionary->add_string_table("");
  dictionary->add_string_table("a\"b\n");
  dictionary->add_stack_table()->add_location_indices(7);
  EXPECT_EQ(ToJson(request),
            R"({"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[{"values":["-1"]}],)"
            R"("timeUnixNano":"18446744073709551615","profileId":"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"}]}]}],)"
            R"("dictionary":{"linkTable":[{},{"traceId":"01ff"}],"stringTable":["","a\"b\u000a"],)"
            R"("stackTable":[{"locationIndices":[7]}]}})");
}

TEST(OtlpJson, WritesValuesOfAllKinds) {
  AnyValue value;
  value.set_bytes_value("\xff\xfe");
  EXPECT_EQ(ToJson(value), R"({"bytesValue":"//4="})");
  value.set_bool_value(false);
  EXPECT_EQ(ToJson(value), R"({"boolValue":false})");
  value.set_double_value(std::nan(""));
  EXPECT_EQ(ToJson(value), R"({"doubleValue":"NaN"})");
  value.set_double_value(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(ToJson(value), R"({"doubleValue":"-Infinity"})");
}

// Protobuf's own reader understands everything except the hexadecimal ids.
TEST(OtlpJson, IsReadBackEqual) {
  ExportProfilesServiceRequest request, read;
  auto* resource = request.add_resource_profiles()->mutable_resource();
  auto* list = resource->add_attributes();
  list->set_key("ports");
  list->mutable_value()->mutable_array_value()->add_values()->set_int_value(-80);
  list->mutable_value()->mutable_array_value()->add_values()->set_double_value(0.1);
  auto* sample = request.mutable_resource_profiles(0)->add_scope_profiles()->add_profiles()->add_samples();
  sample->set_stack_index(1);
  sample->add_timestamps_unix_nano(1'700'000'000'000'000'001);
  request.mutable_dictionary()->add_mapping_table()->set_memory_limit(uint64_t{1} << 63);
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(ToJson(request), &read).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(request, read)) << read.DebugString();
}

}  // namespace
}  // namespace tributary::otlp
