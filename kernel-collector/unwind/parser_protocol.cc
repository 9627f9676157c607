#include "kernel-collector/unwind/parser_protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tributary {
namespace {

bool Wait(int fd, short events, int timeout_ms) {
  pollfd poll_fd = {.fd = fd, .events = events, .revents = 0};
  int ready;
  do {
    ready = poll(&poll_fd, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

bool ReadAll(int fd, void* to, size_t bytes, int timeout_ms) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (!Wait(fd, POLLIN, timeout_ms)) return false;
    ssize_t n = recv(fd, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int fd, const void* from, size_t bytes, int timeout_ms) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    if (!Wait(fd, POLLOUT, timeout_ms)) return false;
    ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool SendRequest(int socket, const ParserRequest& request, int file, int timeout_ms) {
  if (file < 0) return WriteAll(socket, &request, sizeof(request), timeout_ms);
  if (!Wait(socket, POLLOUT, timeout_ms)) return false;
  iovec data = {.iov_base = const_cast<ParserRequest*>(&request), .iov_len = sizeof(request)};
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
  // A request is far smaller than a socket's buffer: it goes whole or not at all.
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(request));
}

bool ReceiveRequest(int socket, ParserRequest* request, Fd* file, int timeout_ms) {
  if (!Wait(socket, POLLIN, timeout_ms)) return false;
  iovec data = {.iov_base = request, .iov_len = sizeof(*request)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  if (n != static_cast<ssize_t>(sizeof(*request))) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return true;
  if (header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) return false;
  int fd;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
  file->Reset(fd);
  return true;
}

}  // namespace tributary
