#include "base/secret_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/certificates_testing.h"
#include "base/clock.h"
#include "base/status.h"

namespace tributary {
namespace {

TEST(SecretFile, IsReadWhole) {
  TestFiles files;
  const std::string text(100'000, 'x');
  EXPECT_EQ(*ReadSecretFile(files.Write("a", text), 100'000), text);
  EXPECT_EQ(*ReadSecretFile(files.Write("b", "", 0640), 1), "");
}

TEST(SecretFile, IsRefusedWhenOthersMayReadOrWriteIt) {
  TestFiles files;
  for (mode_t mode : {0644, 0604, 0602, 0666}) {
    absl::Status status = ReadSecretFile(files.Write("a", "x", mode), 10).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(status), testing::HasSubstr("chmod o-rwx"));
  }
}

TEST(SecretFile, IsRefusedIfInvalidOrTooLarge) {
  TestFiles files;
  ASSERT_EQ(mkfifo(files.Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadSecretFile(files.Path("pipe"), 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadSecretFile(files.Path("."), 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadSecretFile(files.Write("a", "12345678901"), 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadSecretFile(files.Path("none"), 10).status().code(), absl::StatusCode::kNotFound);
}

TEST(FileWatch, NoticesEveryKindOfChangeOnce) {
  TestFiles files;
  const std::string path = files.Write("a", "x"), other = files.Path("b");
  FileWatch watch({path, other}, kNsPerSecond);
  FakeClock clock;
  auto changed = [&] {
    clock.Advance(kNsPerSecond);
    return watch.Changed(clock.Monotonic());
  };
  EXPECT_FALSE(changed());
  files.Write("a", "y");  // another file replaces it
  EXPECT_TRUE(changed());
  EXPECT_FALSE(changed());
  files.Write("b", "");
  EXPECT_TRUE(changed());
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_TRUE(changed());
  std::filesystem::remove(path);
  EXPECT_TRUE(changed());
  EXPECT_FALSE(changed());
}

TEST(FileWatch, LooksOnceAPeriod) {
  TestFiles files;
  FileWatch watch({files.Path("a")}, kNsPerSecond);
  FakeClock clock;
  EXPECT_FALSE(watch.Changed(clock.Monotonic()));
  files.Write("a", "x");
  clock.Advance(kNsPerSecond - 1);
  EXPECT_FALSE(watch.Changed(clock.Monotonic()));
  clock.Advance(1);
  EXPECT_TRUE(watch.Changed(clock.Monotonic()));
}

}  // namespace
}  // namespace tributary
