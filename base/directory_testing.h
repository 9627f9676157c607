#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace tributary {

// A temporary directory for one test. The destructor removes it with its contents.
class TestDirectory {
 public:
  TestDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "tributary-test-XXXXXX").string();
    TRIBUTARY_CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tributary
