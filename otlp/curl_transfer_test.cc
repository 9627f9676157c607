#include "otlp/curl_transfer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"

namespace tributary::otlp {
namespace {

// Otherwise the callers would wait again at once, without end.
TEST(CurlTransfer, ReportsThatItCannotWait) {
  const auto transfer = CurlTransfer::Make({.target = "127.0.0.1:1"}, "/");
  ASSERT_TRUE(transfer.ok()) << transfer.status();
  EXPECT_TRUE((*transfer)->Wait(CURL_SOCKET_BAD, 0, 1).ok());
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = old.rlim_max};  // poll() fails if it gets more sockets than this
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = (*transfer)->Wait(CURL_SOCKET_BAD, 0, 1).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
}

TEST(CurlTransfer, SaysForWhatASocketIsReady) {
  const auto transfer = CurlTransfer::Make({.target = "127.0.0.1:1"}, "/");
  ASSERT_TRUE(transfer.ok()) << transfer.status();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]), writer(ends[1]);
  EXPECT_EQ(*(*transfer)->Wait(writer.get(), CURL_WAIT_POLLIN | CURL_WAIT_POLLOUT, kNsPerSecond), CURL_WAIT_POLLOUT);
  EXPECT_EQ(*(*transfer)->Wait(reader.get(), CURL_WAIT_POLLIN, 1), 0);
}

}  // namespace
}  // namespace tributary::otlp
