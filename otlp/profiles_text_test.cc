#include "otlp/profiles_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

// Central European time by rule, so that the test needs no time zone database.
class ProfilesText : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  void TearDown() override {
    unsetenv("TZ");
    tzset();
  }

  void SetStrings(std::vector<std::string> strings) {
    for (std::string& text : strings) request_.mutable_dictionary()->add_string_table(std::move(text));
  }
  int StringAttribute(int key, const std::string& value) {
    auto* attribute = request_.mutable_dictionary()->add_attribute_table();
    attribute->set_key_strindex(key);
    attribute->mutable_value()->set_string_value(value);
    return request_.dictionary().attribute_table_size() - 1;
  }
  int IntAttribute(int key, int64_t value) {
    auto* attribute = request_.mutable_dictionary()->add_attribute_table();
    attribute->set_key_strindex(key);
    attribute->mutable_value()->set_int_value(value);
    return request_.dictionary().attribute_table_size() - 1;
  }
  // Adds a function and its location with the given type of frame.
  int Frame(int name, int file, int64_t line, int frame_type) {
    auto* dictionary = request_.mutable_dictionary();
    auto* function = dictionary->add_function_table();
    function->set_name_strindex(name);
    function->set_filename_strindex(file);
    auto* location = dictionary->add_location_table();
    location->add_attribute_indices(frame_type);
    auto* at = location->add_lines();
    at->set_function_index(dictionary->function_table_size() - 1);
    at->set_line(line);
    return dictionary->location_table_size() - 1;
  }
  void AddZeroes() {
    auto* dictionary = request_.mutable_dictionary();
    dictionary->add_attribute_table();
    dictionary->add_function_table();
    dictionary->add_location_table();
    dictionary->add_mapping_table();
    dictionary->add_stack_table();
  }
  auto* AddProfile(const std::string& container_id) {
    auto* resource = request_.add_resource_profiles();
    auto* attribute = resource->mutable_resource()->add_attributes();
    attribute->set_key("container.id");
    attribute->mutable_value()->set_string_value(container_id);
    return resource->add_scope_profiles()->add_profiles();
  }

  ProfilesRequest request_;
};

TEST_F(ProfilesText, PrintsTheLazyBackendLayout) {
  AddZeroes();
  SetStrings({"", "samples", "cpu", "nanoseconds", "thread.name", "process.executable.name", "process.executable.path",
              "process.pid", "thread.id", "profile.frame.type", "do_syscall_64", "runtime.futex",
              "runtime/sys_linux_amd64.s"});
  int kernel = StringAttribute(9, "kernel"), go = StringAttribute(9, "go");
  auto* stack = request_.mutable_dictionary()->add_stack_table();
  stack->add_location_indices(Frame(10, 0, 0, kernel));
  stack->add_location_indices(Frame(11, 12, 558, go));

  auto* profile = AddProfile("6d7d5c336f79fbfae3e76c4a25b2c3805ffa74ab4c6145d4219ec2b92185fb6f");
  profile->set_time_unix_nano(1758603335517877230);
  profile->set_duration_nano(2840298447);
  profile->mutable_sample_type()->set_type_strindex(1);
  profile->mutable_period_type()->set_type_strindex(2);
  profile->mutable_period_type()->set_unit_strindex(3);
  profile->set_period(50000000);
  auto* sample = profile->add_samples();
  sample->set_stack_index(1);
  sample->add_timestamps_unix_nano(1758603335517877230);
  sample->add_timestamps_unix_nano(1758603337358132101);
  for (int attribute : {StringAttribute(4, "etcd"), StringAttribute(5, "etcd"),
                        StringAttribute(6, "/usr/local/bin/etcd"), IntAttribute(7, 3086), IntAttribute(8, 11322)}) {
    sample->add_attribute_indices(attribute);
  }

  EXPECT_EQ(FormatProfiles(request_, {.layout = TextLayout::kLazyBackend}),
            R"(--------------- New Resource Profile --------------
  container.id: 6d7d5c336f79fbfae3e76c4a25b2c3805ffa74ab4c6145d4219ec2b92185fb6f
------------------- New Profile -------------------
  ProfileID: 00000000000000000000000000000000
  Time: 2025-09-23 04:55:35.51787723 +0000 UTC
  Duration: 1970-01-01 00:00:02.840298447 +0000 UTC
  PeriodType: [cpu, nanoseconds, Unspecified]
  Period: 50000000
  Dropped attributes count: 0
  SampleType: samples
------------------- New Sample --------------------
  Timestamp[0]: 1758603335517877230 (2025-09-23 06:55:35.51787723 +0200 CEST)
  Timestamp[1]: 1758603337358132101 (2025-09-23 06:55:37.358132101 +0200 CEST)
  thread.name: etcd
  process.executable.name: etcd
  process.executable.path: /usr/local/bin/etcd
  process.pid: 3086
  thread.id: 11322
---------------------------------------------------
Instrumentation: kernel, Function: do_syscall_64, File: , Line: 0, Column: 0
Instrumentation: go, Function: runtime.futex, File: runtime/sys_linux_amd64.s, Line: 558, Column: 0
------------------- End Sample --------------------
------------------- End Profile -------------------
-------------- End Resource Profile ---------------

)");
}

TEST_F(ProfilesText, PrintsTheCollectorLayout) {
  AddZeroes();
  SetStrings({"", "samples", "thread.name", "process.pid", "profile.frame.type", "_raw_spin_unlock_irqrestore"});
  int kernel = StringAttribute(4, "kernel");
  request_.mutable_dictionary()->add_stack_table()->add_location_indices(Frame(5, 0, 0, kernel));

  auto* profile = AddProfile("cb8ebdde43ea93f184b41d77695ae90411f952e7850c4a37f42408de78b8faa4");
  auto* digests = request_.mutable_resource_profiles(0)->mutable_resource()->add_attributes();
  digests->set_key("container.image.repo_digests");
  digests->mutable_value()->mutable_array_value()->add_values()->set_string_value("registry/x@sha256:e04f");
  profile->set_time_unix_nano(1758603335517877230);
  profile->mutable_sample_type()->set_type_strindex(1);
  auto* sample = profile->add_samples();
  sample->set_stack_index(1);
  sample->add_timestamps_unix_nano(1758603335517877230);
  sample->add_attribute_indices(StringAttribute(2, "kube-apiserver"));
  sample->add_attribute_indices(IntAttribute(3, 2751));

  EXPECT_EQ(FormatProfiles(request_, {.layout = TextLayout::kCollector}),
            R"(--------------- New Resource Profile --------------
  container.id: cb8ebdde43ea93f184b41d77695ae90411f952e7850c4a37f42408de78b8faa4 (Str)
  container.image.repo_digests: ["registry/x@sha256:e04f"] (Slice)
------------------- New Profile -------------------
  ProfileID: 00000000000000000000000000000000
  Dropped attributes count: 0
  SampleType: samples
------------------- New Sample --------------------
  thread.name: kube-apiserver (Str)
  process.pid: 2751 (Int)
---------------------------------------------------
Instrumentation: kernel, Function: _raw_spin_unlock_irqrestore
------------------- End Sample --------------------
------------------- End Profile -------------------
-------------- End Resource Profile ---------------

)");
}

TEST_F(ProfilesText, EscapesControlBytesInNames) {
  AddZeroes();
  SetStrings({"", "thread.name"});
  auto* sample = AddProfile("")->add_samples();
  sample->add_attribute_indices(StringAttribute(1, "x\n--- End Sample ---\x1b[2J\r\xc2\x9b"));
  std::string text = FormatProfiles(request_, {.layout = TextLayout::kLazyBackend});
  EXPECT_NE(text.find(R"(  thread.name: x\x0a--- End Sample ---\x1b[2J\x0d\xc2\x9b)"), text.npos) << text;
  EXPECT_EQ(text.find('\x1b'), text.npos);
}

TEST_F(ProfilesText, ShowsAddressAndExecutableOfAFrameWithoutName) {
  AddZeroes();
  SetStrings({"", "profile.frame.type", "libc.so.6"});
  request_.mutable_dictionary()->add_mapping_table()->set_filename_strindex(2);
  const int native = StringAttribute(1, "native");
  auto* stack = request_.mutable_dictionary()->add_stack_table();
  for (const auto& [mapping, address] : {std::pair(1, 0xd4377), std::pair(1, 0x7), std::pair(0, 0x1234)}) {
    auto* location = request_.mutable_dictionary()->add_location_table();
    location->set_mapping_index(mapping);
    location->set_address(static_cast<uint64_t>(address));
    location->add_attribute_indices(native);
    stack->add_location_indices(request_.dictionary().location_table_size() - 1);
  }
  AddProfile("")->add_samples()->set_stack_index(1);
  for (const TextLayout layout : {TextLayout::kLazyBackend, TextLayout::kCollector}) {
    const std::string text = FormatProfiles(request_, {.layout = layout});
    EXPECT_NE(text.find("\nInstrumentation: native: Function: 0xd4377, File: libc.so.6\n"
                        "Instrumentation: native: Function: 0x0007, File: libc.so.6\n"
                        "Instrumentation: native: Function: 0x1234, File: <unknown>\n"),
              text.npos)
        << text;
  }
}

TEST_F(ProfilesText, CutsLongNames) {
  AddZeroes();
  SetStrings({"", std::string(16'384, 'n'), std::string(16'384, 'f')});
  request_.mutable_dictionary()->add_stack_table()->add_location_indices(Frame(1, 2, 7, 0));
  AddProfile("")->add_samples()->set_stack_index(1);
  EXPECT_NE(FormatProfiles(request_, {})
                .find("Function: " + std::string(1'024, 'n') + ", File: " + std::string(1'024, 'f') + ", Line: 7"),
            std::string::npos);
}

TEST_F(ProfilesText, LeavesOutSamplesOfATooLongText) {
  AddZeroes();
  SetStrings({"", std::string(500, 'n')});
  const int frame = Frame(1, 0, 7, 0);
  auto* stack = request_.mutable_dictionary()->add_stack_table();
  for (int i = 0; i < 512; ++i) stack->add_location_indices(frame);
  auto* profile = AddProfile("");
  for (int i = 0; i < 4; ++i) {
    auto* sample = profile->add_samples();
    sample->set_stack_index(i == 1 || i == 2 ? 1 : 0);
    for (int k = 0; k < 5; ++k) sample->add_timestamps_unix_nano(1);
  }
  const RequestText whole = FormatRequest(request_, {});
  EXPECT_EQ(whole.left_out_samples, 0u);
  EXPECT_EQ(whole.text.find("left out"), std::string::npos);
  const RequestText cut = FormatRequest(request_, {.text_bytes_max = 400'000});
  EXPECT_EQ(cut.left_out_samples, 10u) << "the samples behind the large one are left out, too";
  EXPECT_LE(cut.text.size(), 401'000u);
  EXPECT_GT(cut.text.size(), 250'000u);
  EXPECT_TRUE(
      cut.text.ends_with("\n10 samples are left out, because the text of the request would have more than 400000 "
                         "bytes\n\n"));
}

TEST_F(ProfilesText, ReadsIndicesOutOfRangeAsNotSet) {
  auto* sample = AddProfile("")->add_samples();
  sample->set_stack_index(7);
  sample->add_attribute_indices(-1);
  EXPECT_NE(FormatProfiles(request_, {.layout = TextLayout::kCollector}).find("  :  (Empty)\n"), std::string::npos);
}

}  // namespace
}  // namespace tributary::otlp
