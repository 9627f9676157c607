#include "reducer/export/file_options.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace tributary {
namespace {

TEST(FileOptions, TakesEachParameter) {
  FileOptions options;
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{{"by", "container"},
                                                                                             {"format", "otlp_json"},
                                                                                             {"rotate_bytes", "1MiB"},
                                                                                             {"rotate_after", "90s"},
                                                                                             {"keep", "7"}}) {
    EXPECT_EQ(SetFileOption(key, value, &options), "") << key;
  }
  EXPECT_EQ(options.attribute, "container.id");
  EXPECT_EQ(options.format, FileOptions::Format::kOtlpJson);
  EXPECT_EQ(options.rotate_bytes, 1 << 20);
  EXPECT_EQ(options.rotate_after_ns, 90 * kNsPerSecond);
  EXPECT_EQ(options.keep, 7);
}

TEST(FileOptions, RefusesOtherKeysAndValues) {
  FileOptions options;
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{{"by", "pod"},
                                                                                             {"by", ""},
                                                                                             {"format", "pprof"},
                                                                                             {"rotate_bytes", "1"},
                                                                                             {"rotate_bytes", "1TiB"},
                                                                                             {"rotate_bytes", "x"},
                                                                                             {"rotate_after", "0s"},
                                                                                             {"rotate_after", "31d"},
                                                                                             {"rotate_after", "5"},
                                                                                             {"keep", "0"},
                                                                                             {"keep", "1001"},
                                                                                             {"keep", "-1"},
                                                                                             {"layout", "collector"}}) {
    EXPECT_NE(SetFileOption(key, value, &options), "") << key << '=' << value;
  }
  EXPECT_EQ(options.keep, 24);
}

TEST(FileOptions, SpellingsOfADirectoryAreEqual) {
  for (const char* path : {"/var/lib/x", "/var/lib/x/", "/var//lib/./x", "/var/lib/y/../x", "/var/lib/%78"}) {
    EXPECT_EQ(ParseFileDirectory(path).value(), "/var/lib/x") << path;
  }
  EXPECT_EQ(ParseFileDirectory("/a%3Fb%20c").value(), "/a?b c");
  EXPECT_EQ(ParseFileDirectory("/").value(), "/");
}

TEST(FileOptions, RefusesOtherDirectories) {
  for (const char* path : {"", "relative", "./x", "localhost/x", "~", "/a%00b"}) {
    EXPECT_EQ(ParseFileDirectory(path).status().code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_FALSE(ParseFileDirectory("/" + std::string(5'000, 'x')).ok());
}

}  // namespace
}  // namespace tributary
