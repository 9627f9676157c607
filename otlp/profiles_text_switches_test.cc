#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "otlp/profiles_text.h"
#include "schemas/otlp/profiles_service.pb.h"

// The switches of FormatProfiles, with the example of the Collector distribution's page: each part of the page's text
// is a constant here.

namespace tributary::otlp {
namespace {

constexpr char kNewResource[] = "--------------- New Resource Profile --------------\n";
constexpr char kResource[] = R"(  container.id: cb8ebdde43ea93f184b41d77695ae90411f952e7850c4a37f42408de78b8faa4 (Str)
  k8s.pod.name: kube-apiserver-kube-control-plane (Str)
  service.name: kube-apiserver-kube-control-plane (Str)
  container.image.repo_digests: ["registry.k8s.io/kube-apiserver@sha256:e04f6223d52f8041c46ef4545ccaf07894b1ca5851506a9142706d4206911f64"] (Slice)
  foo: bar (Str)
)";
constexpr char kProfile[] = R"(------------------- New Profile -------------------
  ProfileID: 00000000000000000000000000000000
  Dropped attributes count: 0
  SampleType: samples
)";
constexpr char kNewSample[] = "------------------- New Sample --------------------\n";
constexpr char kSample[] = R"(  thread.name: kube-apiserver (Str)
  process.executable.name: kube-apiserver (Str)
  process.executable.path: /usr/local/bin/kube-apiserver (Str)
  process.pid: 2751 (Int)
  thread.id: 2830 (Int)
---------------------------------------------------
)";
constexpr char kKernelFrames[] = R"(Instrumentation: kernel, Function: __x64_sys_epoll_pwait
Instrumentation: kernel, Function: x64_sys_call
)";
constexpr char kGoFrames[] = R"(Instrumentation: go, Function: internal/runtime/syscall.Syscall6
Instrumentation: go, Function: runtime.mcall
)";
constexpr char kEndSample[] = "------------------- End Sample --------------------\n";
constexpr char kEndProfile[] = "------------------- End Profile -------------------\n";
constexpr char kEndResource[] = "-------------- End Resource Profile ---------------\n\n";

class ProfilesTextSwitches : public ::testing::Test {
 protected:
  ProfilesTextSwitches() {
    auto* dictionary = request_.mutable_dictionary();
    dictionary->add_mapping_table();
    dictionary->add_location_table();
    dictionary->add_function_table();
    dictionary->add_string_table();
    dictionary->add_attribute_table();
    dictionary->add_stack_table();

    auto* resource = request_.add_resource_profiles();
    AddText(resource, "container.id", "cb8ebdde43ea93f184b41d77695ae90411f952e7850c4a37f42408de78b8faa4");
    AddText(resource, "k8s.pod.name", "kube-apiserver-kube-control-plane");
    AddText(resource, "service.name", "kube-apiserver-kube-control-plane");
    auto* digests = resource->mutable_resource()->add_attributes();
    digests->set_key("container.image.repo_digests");
    digests->mutable_value()->mutable_array_value()->add_values()->set_string_value(
        "registry.k8s.io/kube-apiserver@sha256:e04f6223d52f8041c46ef4545ccaf07894b1ca5851506a9142706d4206911f64");
    AddText(resource, "foo", "bar");

    profile_ = resource->add_scope_profiles()->add_profiles();
    profile_->mutable_sample_type()->set_type_strindex(String("samples"));
    auto* sample = profile_->add_samples();
    sample->add_timestamps_unix_nano(1758603335517877230);
    sample->set_stack_index(1);
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
             {"thread.name", "kube-apiserver"},
             {"process.executable.name", "kube-apiserver"},
             {"process.executable.path", "/usr/local/bin/kube-apiserver"}}) {
      sample->add_attribute_indices(Attribute(key, value));
    }
    for (const auto& [key, value] :
         std::vector<std::pair<std::string, int64_t>>{{"process.pid", 2751}, {"thread.id", 2830}}) {
      sample->add_attribute_indices(Attribute(key, ""));
      dictionary->mutable_attribute_table()->rbegin()->mutable_value()->set_int_value(value);
    }
    stack_ = dictionary->add_stack_table();
    for (const auto& [type, name] :
         std::vector<std::pair<std::string, std::string>>{{"kernel", "__x64_sys_epoll_pwait"},
                                                          {"kernel", "x64_sys_call"},
                                                          {"go", "internal/runtime/syscall.Syscall6"},
                                                          {"go", "runtime.mcall"}}) {
      AddFrame(type)->add_lines()->set_function_index(Function(name));
    }
  }

  opentelemetry::proto::profiles::v1development::Location* AddFrame(const std::string& type) {
    auto* location = request_.mutable_dictionary()->add_location_table();
    location->add_attribute_indices(Attribute("profile.frame.type", type));
    stack_->add_location_indices(request_.dictionary().location_table_size() - 1);
    return location;
  }
  template <typename ResourceProfiles>
  static void AddText(ResourceProfiles* resource, const std::string& key, const std::string& value) {
    auto* attribute = resource->mutable_resource()->add_attributes();
    attribute->set_key(key);
    attribute->mutable_value()->set_string_value(value);
  }
  int String(const std::string& text) {
    request_.mutable_dictionary()->add_string_table(text);
    return request_.dictionary().string_table_size() - 1;
  }
  int Attribute(const std::string& key, const std::string& value) {
    auto* attribute = request_.mutable_dictionary()->add_attribute_table();
    attribute->set_key_strindex(String(key));
    attribute->mutable_value()->set_string_value(value);
    return request_.dictionary().attribute_table_size() - 1;
  }
  int Function(const std::string& name) {
    request_.mutable_dictionary()->add_function_table()->set_name_strindex(String(name));
    return request_.dictionary().function_table_size() - 1;
  }
  std::string Format(TextOptions options) const {
    options.layout = TextLayout::kCollector;
    return FormatProfiles(request_, options);
  }
  static std::string Text(std::initializer_list<const char*> parts) {
    std::string out;
    for (const char* part : parts) out += part;
    return out;
  }

  ProfilesRequest request_;
  opentelemetry::proto::profiles::v1development::Profile* profile_;
  opentelemetry::proto::profiles::v1development::Stack* stack_;
};

TEST_F(ProfilesTextSwitches, PrintsThePage) {
  EXPECT_EQ(Format({}), Text({kNewResource, kResource, kProfile, kNewSample, kSample, kKernelFrames, kGoFrames,
                              kEndSample, kEndProfile, kEndResource}));
}

TEST_F(ProfilesTextSwitches, ExportResourceAttributes) {
  EXPECT_EQ(Format({.export_resource_attributes = false}),
            Text({kNewResource, kProfile, kNewSample, kSample, kKernelFrames, kGoFrames, kEndSample, kEndProfile,
                  kEndResource}));
}

TEST_F(ProfilesTextSwitches, ExportProfileAttributes) {
  profile_->add_attribute_indices(Attribute("pprof.profile.doc_url", "https://example/doc"));
  EXPECT_EQ(Format({}), Text({kNewResource, kResource, kProfile, "  pprof.profile.doc_url: https://example/doc (Str)\n",
                              "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n", kNewSample, kSample, kKernelFrames,
                              kGoFrames, kEndSample, kEndProfile, kEndResource}));
  EXPECT_EQ(Format({.export_profile_attributes = false}),
            Text({kNewResource, kResource, kProfile, kNewSample, kSample, kKernelFrames, kGoFrames, kEndSample,
                  kEndProfile, kEndResource}));
}

// The line below the attributes goes with them.
TEST_F(ProfilesTextSwitches, ExportSampleAttributes) {
  EXPECT_EQ(Format({.export_sample_attributes = false}),
            Text({kNewResource, kResource, kProfile, kNewSample, kKernelFrames, kGoFrames, kEndSample, kEndProfile,
                  kEndResource}));
}

TEST_F(ProfilesTextSwitches, ExportStackFrames) {
  EXPECT_EQ(Format({.export_stack_frames = false}),
            Text({kNewResource, kResource, kProfile, kNewSample, kSample, kEndSample, kEndProfile, kEndResource}));
}

TEST_F(ProfilesTextSwitches, ExportStackFrameTypes) {
  EXPECT_EQ(
      Format({.export_stack_frame_types = {"native", "go", "jvm"}}),
      Text({kNewResource, kResource, kProfile, kNewSample, kSample, kGoFrames, kEndSample, kEndProfile, kEndResource}));
  EXPECT_EQ(Format({.export_stack_frame_types = {"kernel"}}),
            Text({kNewResource, kResource, kProfile, kNewSample, kSample, kKernelFrames, kEndSample, kEndProfile,
                  kEndResource}));
}

// The page of lazybackend has this line.
TEST_F(ProfilesTextSwitches, ExportFunctionFile) {
  stack_->clear_location_indices();
  auto* line = AddFrame("go")->add_lines();
  line->set_function_index(Function("runtime.futex"));
  line->set_line(558);
  request_.mutable_dictionary()->mutable_function_table()->rbegin()->set_filename_strindex(
      String("runtime/sys_linux_amd64.s"));
  constexpr char kWithFile[] =
      "Instrumentation: go, Function: runtime.futex, File: runtime/sys_linux_amd64.s, Line: 558, Column: 0\n";
  constexpr char kWithoutFile[] = "Instrumentation: go, Function: runtime.futex\n";
  const auto text = [](const char* frame) {
    return Text({kNewResource, kResource, kProfile, kNewSample, kSample, frame, kEndSample, kEndProfile, kEndResource});
  };
  EXPECT_EQ(Format({.export_function_file = true}), text(kWithFile));
  EXPECT_EQ(Format({.export_function_file = false}), text(kWithoutFile));
  EXPECT_EQ(Format({}), text(kWithoutFile));
  EXPECT_NE(FormatProfiles(request_, {}).find(kWithFile), std::string::npos);
  EXPECT_NE(FormatProfiles(request_, {.export_function_file = false}).find(kWithoutFile), std::string::npos);
}

TEST_F(ProfilesTextSwitches, ExportSampleTypes) {
  const std::string all = Format({});
  EXPECT_EQ(Format({.export_sample_types = {"off_cpu", "samples"}}), all);
  EXPECT_EQ(Format({.export_sample_types = {"off_cpu"}}), Text({kNewResource, kResource, kEndResource}));
}

TEST_F(ProfilesTextSwitches, IgnoreProfilesWithoutContainerId) {
  const TextOptions ignore{.ignore_profiles_without_container_id = true};
  EXPECT_EQ(Format(ignore), Format({}));
  auto* id = request_.mutable_resource_profiles(0)->mutable_resource()->mutable_attributes(0);
  constexpr char kSkipped[] = "              SKIPPED (no container.id)\n";
  id->mutable_value()->set_string_value("");
  EXPECT_EQ(Format(ignore), Text({kNewResource, kSkipped, kEndResource}));
  id->set_key("host.id");
  EXPECT_EQ(Format(ignore), Text({kNewResource, kSkipped, kEndResource}));
  EXPECT_EQ(FormatProfiles(request_, ignore), Text({kNewResource, kSkipped, kEndResource}));
}

// The Collector relays keys and texts as indices into the table.
TEST_F(ProfilesTextSwitches, FindsAContainerIdByItsIndices) {
  auto* id = request_.mutable_resource_profiles(0)->mutable_resource()->mutable_attributes(0);
  id->clear_key();
  id->set_key_strindex(String("container.id"));
  id->mutable_value()->set_string_value_strindex(
      String("cb8ebdde43ea93f184b41d77695ae90411f952e7850c4a37f42408de78b8faa4"));
  EXPECT_NE(Format({.ignore_profiles_without_container_id = true}).find(kResource), std::string::npos);
}

TEST_F(ProfilesTextSwitches, PrintsListsAndMapsAsJson) {
  auto* attributes = request_.mutable_resource_profiles(0)->mutable_resource()->mutable_attributes();
  attributes->Clear();
  auto* map = attributes->Add();
  map->set_key("m");
  for (const char* key : {"b", "a"}) {
    auto* item = map->mutable_value()->mutable_kvlist_value()->add_values();
    item->set_key(key);
    item->mutable_value()->mutable_array_value()->add_values()->set_string_value("\"\n\xc2\x9b");
    item->mutable_value()->mutable_array_value()->add_values()->set_int_value(-7);
    item->mutable_value()->mutable_array_value()->add_values();
  }
  auto* bytes = attributes->Add();
  bytes->set_key("b");
  bytes->mutable_value()->set_bytes_value("\x01\x02");
  const std::string text = Format({.export_stack_frames = false});
  EXPECT_NE(text.find(R"(  m: {"a":["\"\u000a\u009b",-7,null],"b":["\"\u000a\u009b",-7,null]} (Map))"
                      "\n  b: AQI= (Bytes)\n"),
            text.npos)
      << text;
}

}  // namespace
}  // namespace tributary::otlp
