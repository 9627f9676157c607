#include "base/system_ca.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"

namespace tributary {
namespace {

class SystemCa : public testing::Test {
 protected:
  void Add(const std::string& path) {
    const std::filesystem::path full = root_.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << "certificates\n";
  }
  TestDirectory root_;
};

TEST_F(SystemCa, FindsTheFileOfEachDistribution) {
  EXPECT_EQ(FindCaFile(nullptr, nullptr, root_.path()), "");
  for (const char* path : {"/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/certs/ca-certificates.crt"}) {
    Add(path);
    EXPECT_EQ(FindCaFile(nullptr, nullptr, root_.path()), root_.path() + path);
  }
}

TEST_F(SystemCa, TheEnvironmentWins) {
  Add("/etc/ssl/certs/ca-certificates.crt");
  EXPECT_EQ(FindCaFile("/mine.pem", nullptr, root_.path()), "/mine.pem");
  EXPECT_EQ(FindCaFile("/mine.pem", "/mine", root_.path()), "/mine.pem");
  EXPECT_EQ(FindCaFile("", "/mine", root_.path()), "");
  EXPECT_EQ(FindCaFile("", "", root_.path()), root_.path() + "/etc/ssl/certs/ca-certificates.crt");
}

}  // namespace
}  // namespace tributary
