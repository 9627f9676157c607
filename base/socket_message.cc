#include "base/socket_message.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace tributary {
namespace {

int64_t NowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// A deadline for a whole message: a peer that sends the message byte by byte gains no time.
class Deadline {
 public:
  explicit Deadline(int timeout_ms) : timeout_ms_(timeout_ms), end_ms_(timeout_ms < 0 ? 0 : NowMs() + timeout_ms) {}

  bool Wait(int fd, short events) const {
    pollfd poll_fd = {.fd = fd, .events = events, .revents = 0};
    int ready;
    do {
      const int64_t left_ms = timeout_ms_ < 0 ? -1 : std::max<int64_t>(end_ms_ - NowMs(), 0);
      ready = poll(&poll_fd, 1, static_cast<int>(left_ms));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
  }

 private:
  const int timeout_ms_;
  const int64_t end_ms_;
};

}  // namespace

bool ReadAll(int socket, void* to, size_t bytes, int timeout_ms) {
  const Deadline deadline(timeout_ms);
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (!deadline.Wait(socket, POLLIN)) return false;
    ssize_t n = recv(socket, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int socket, const void* from, size_t bytes, int timeout_ms) {
  const Deadline deadline(timeout_ms);
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    if (!deadline.Wait(socket, POLLOUT)) return false;
    ssize_t n = send(socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool SendWithFile(int socket, const void* from, size_t bytes, int file, int timeout_ms) {
  if (file < 0) return WriteAll(socket, from, bytes, timeout_ms);
  if (!Deadline(timeout_ms).Wait(socket, POLLOUT)) return false;
  iovec data = {.iov_base = const_cast<void*>(from), .iov_len = bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof(int));
  // A message this small is sent completely or not at all.
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

bool WaitForMessage(int socket, int timeout_ms) { return Deadline(timeout_ms).Wait(socket, POLLIN); }

bool ReceiveWithFile(int socket, void* to, size_t bytes, Fd* file, int timeout_ms) {
  if (!Deadline(timeout_ms).Wait(socket, POLLIN)) return false;
  iovec data = {.iov_base = to, .iov_len = bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  if (n != static_cast<ssize_t>(bytes)) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return true;
  if (header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) return false;
  int fd;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
  file->Reset(fd);
  return true;
}

}  // namespace tributary
