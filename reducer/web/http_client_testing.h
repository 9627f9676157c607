#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/fd.h"

namespace tributary {

// A connection of a test to an HTTP server on 127.0.0.1. It sends bytes as they are.
class RawClient {
 public:
  explicit RawClient(uint16_t port, std::string_view first_bytes = "")
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    if (!first_bytes.empty()) Send(first_bytes);
  }

  void Send(std::string_view bytes) {
    EXPECT_EQ(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Returns the bytes until `end` has arrived, or until the server closes the connection.
  std::string ReceiveUntil(std::string_view end) {
    std::string answer;
    char byte = 0;
    while (!answer.ends_with(end) && recv(socket_.get(), &byte, 1, 0) == 1) answer += byte;
    return answer;
  }
  // Returns the bytes until the server closes the connection.
  std::string ReceiveAll() {
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = recv(socket_.get(), buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(n));
    }
    return answer;
  }
  int fd() const { return socket_.get(); }

 private:
  Fd socket_;
};

// Sends a GET request, and returns the whole answer with its head.
inline std::string RawGet(uint16_t port, std::string_view path, std::string_view headers = "") {
  RawClient client(port,
                   fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n", path, headers));
  return client.ReceiveAll();
}

}  // namespace tributary
