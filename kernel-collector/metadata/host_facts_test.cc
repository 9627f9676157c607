#include "kernel-collector/metadata/host_facts.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"

namespace tributary {
namespace {

// One host root is below `hostfs`, another below `proc`/1/root, as a container may have them.
class HostFactsTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  HostFiles Files() const { return HostFiles(root_.path() + "/hostfs", root_.path() + "/proc"); }

  const TestDirectory root_;
  const std::string machine_id_ = "0123456789abcdef0123456789abcdef";
};

TEST_F(HostFactsTest, TheMountTakesPrecedenceOverProcessOnesRoot) {
  Write("/hostfs/etc/a", "mounted\nmore\n");
  Write("/proc/1/root/etc/a", "of process 1");
  Write("/proc/1/root/etc/b", "of process 1");
  EXPECT_EQ(Files().FirstLine("/etc/a"), "mounted");
  EXPECT_EQ(Files().FirstLine("/etc/b"), "of process 1");
  EXPECT_EQ(Files().FirstLine("/etc/nonexistent"), "");
  EXPECT_EQ(Files().Read("/etc/nonexistent", 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Files().Read("/etc/a", 10).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(HostFactsTest, LinksStayWithinTheHostsRoot) {
  Write("/hostfs/usr/lib/os-release", "NAME=Host\n");
  std::filesystem::create_directories(root_.path() + "/hostfs/etc");
  std::filesystem::create_symlink("../../../../usr/lib/os-release", root_.path() + "/hostfs/etc/os-release");
  std::filesystem::create_symlink("/usr/lib/os-release", root_.path() + "/hostfs/etc/absolute");
  EXPECT_EQ(Files().FirstLine("/etc/os-release"), "NAME=Host");
  EXPECT_EQ(Files().FirstLine("/etc/absolute"), "NAME=Host");
}

// Only /etc is mounted, and os-release is a link that leads out of /etc.
TEST_F(HostFactsTest, ReadsABrokenLinkInTheNextPlace) {
  std::filesystem::create_directories(root_.path() + "/hostfs/etc");
  std::filesystem::create_symlink("../usr/lib/os-release-of-the-host", root_.path() + "/hostfs/etc/os-release");
  Write("/proc/1/root/etc/os-release", "NAME=Host\n");
  EXPECT_EQ(Files().FirstLine("/etc/os-release"), "NAME=Host");
}

TEST_F(HostFactsTest, HostIdIsTheMachineId) {
  Write("/hostfs/etc/machine-id", machine_id_ + "\n");
  EXPECT_EQ(ReadHostId(Files(), root_.path()), machine_id_);
}

TEST_F(HostFactsTest, HostIdIsTheFirmwaresWithoutAMachineId) {
  Write("/hostfs/etc/machine-id", "uninitialized\n");
  Write("/hostfs/var/lib/dbus/machine-id", "");
  Write("/class/dmi/id/product_uuid", "ec2e1916-9099-7caf-fd21-012345abcdef\n");
  EXPECT_EQ(ReadHostId(Files(), root_.path()), "ec2e1916-9099-7caf-fd21-012345abcdef");
  Write("/class/dmi/id/product_uuid", "ffffffff-ffff-ffff-ffff-ffffffffffff\n");
  EXPECT_EQ(ReadHostId(Files(), root_.path()), "");
}

TEST_F(HostFactsTest, HostNameIsTheKernelsUnlessThisProcessHasItsOwn) {
  utsname names{};
  ASSERT_EQ(uname(&names), 0);
  Write("/hostfs/etc/hostname", "node-7\n");
  EXPECT_EQ(ReadHostName(Files(), root_.path() + "/proc"), names.nodename);
  std::filesystem::create_directories(root_.path() + "/proc/1/ns");
  std::filesystem::create_symlink("uts:[1]", root_.path() + "/proc/1/ns/uts");
  EXPECT_EQ(ReadHostName(Files(), root_.path() + "/proc"), "node-7");
}

TEST_F(HostFactsTest, OsComesFromOsRelease) {
  Write("/hostfs/etc/os-release",
        "# a comment\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME='Debian GNU/Linux'\nVERSION_ID=\"12\"\n"
        "VERSION=\"12 (bookworm)\"\nID=debian\n");
  EXPECT_EQ(ReadOs(Files()), (Attributes{{"os.description", "Debian GNU/Linux 12 (bookworm)"},
                                         {"os.name", "Debian GNU/Linux"},
                                         {"os.type", "linux"},
                                         {"os.version", "12"}}));
}

TEST(OsReleaseValue, ReadsAsAShellWould) {
  EXPECT_EQ(OsReleaseValue("A=1\nNAME=plain\n", "NAME"), "plain");
  EXPECT_EQ(OsReleaseValue("NAME=\"a \\\"b\\\" \\$c\\\\\"", "NAME"), "a \"b\" $c\\");
  EXPECT_EQ(OsReleaseValue("NAME='a \\b'", "NAME"), "a \\b");
  EXPECT_EQ(OsReleaseValue("NAME=first\nNAME=second", "NAME"), "second");
  EXPECT_EQ(OsReleaseValue("NAME=\"never ends", "NAME"), "never ends");
  EXPECT_EQ(OsReleaseValue("NAME=\"\\", "NAME"), "\\");
  EXPECT_EQ(OsReleaseValue("NAMES=x\nNAME", "NAME"), "");
  EXPECT_EQ(OsReleaseValue("", "NAME"), "");
}

}  // namespace
}  // namespace tributary
