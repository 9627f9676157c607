#include "otlp/text_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary::otlp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TextOptions, TakesEachSwitchOfThePages) {
  TextOptions options;
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"layout", "collector"},
           {"ignore_profiles_without_container_id", "true"},
           {"export_resource_attributes", "false"},
           {"export_profile_attributes", "false"},
           {"export_sample_attributes", "false"},
           {"export_stack_frames", "false"},
           {"export_stack_frame_types", "native,kernel,go,jvm,php,cpython"},
           {"export_function_file", "true"},
           {"export_sample_types", "samples,off_cpu"}}) {
    EXPECT_EQ(SetTextOption(key, value, &options), "") << key;
  }
  EXPECT_EQ(options.layout, TextLayout::kCollector);
  EXPECT_TRUE(options.ignore_profiles_without_container_id);
  EXPECT_FALSE(options.export_resource_attributes);
  EXPECT_FALSE(options.export_profile_attributes);
  EXPECT_FALSE(options.export_sample_attributes);
  EXPECT_FALSE(options.export_stack_frames);
  EXPECT_THAT(options.export_stack_frame_types, ElementsAre("native", "kernel", "go", "jvm", "php", "cpython"));
  EXPECT_EQ(options.export_function_file, true);
  EXPECT_THAT(options.export_sample_types, ElementsAre("samples", "off_cpu"));
}

TEST(TextOptions, AnEmptyListMeansAll) {
  TextOptions options{.export_sample_types = {"samples"}};
  EXPECT_EQ(SetTextOption("export_sample_types", "", &options), "");
  EXPECT_THAT(options.export_sample_types, IsEmpty());
}

TEST(TextOptions, RefusesOtherKeysAndValues) {
  TextOptions options;
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"export_frames", "true"},
                                                                  {"", ""},
                                                                  {"layout", "json"},
                                                                  {"layout", ""},
                                                                  {"export_stack_frames", "yes"},
                                                                  {"export_stack_frames", ""},
                                                                  {"export_function_file", "1"},
                                                                  {"export_sample_types", ","},
                                                                  {"export_sample_types", "samples,"},
                                                                  {"export_stack_frame_types", ",go"},
                                                                  {"export_stack_frame_types", "go,,kernel"}}) {
    EXPECT_NE(SetTextOption(key, value, &options), "") << key << '=' << value;
  }
  EXPECT_TRUE(options.export_stack_frames);
  EXPECT_THAT(options.export_sample_types, IsEmpty());
}

TEST(TextOptions, ALongListIsRefused) {
  TextOptions options;
  std::string list = "a";
  for (size_t i = 1; i < kTextListItemsMax; ++i) list += ",a";
  EXPECT_EQ(SetTextOption("export_sample_types", list, &options), "");
  EXPECT_NE(SetTextOption("export_sample_types", list + ",a", &options), "");
  EXPECT_THAT(options.export_sample_types, SizeIs(kTextListItemsMax));
}

TEST(TextOptions, ReadsALine) {
  const auto options =
      ParseTextOptions("export_stack_frames=false&export_sample_types=a%20b,c", {.layout = TextLayout::kCollector});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->layout, TextLayout::kCollector);
  EXPECT_FALSE(options->export_stack_frames);
  EXPECT_THAT(options->export_sample_types, ElementsAre("a b", "c"));
  EXPECT_TRUE(ParseTextOptions("", {}).ok());
  for (const char* bad :
       {"x", "=", "layout=", "layout=x", "a=b", "layout=collector&layout=collector", "&", "export_stack_frames=1"}) {
    EXPECT_EQ(ParseTextOptions(bad, {}).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(TextOptions, AllNamesAreAccepted) {
  for (const std::string_view name : TextOptionNames()) {
    TextOptions options;
    const bool is_list = name.ends_with("_types");
    EXPECT_EQ(SetTextOption(name, name == "layout" ? "collector" : is_list ? "a" : "true", &options), "") << name;
  }
  EXPECT_THAT(TextOptionNames(), SizeIs(9));
}

}  // namespace
}  // namespace tributary::otlp
