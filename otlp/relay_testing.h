#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/server_testing.h"

namespace tributary {

// For tests: a load balancer before a server on a loopback port. It can forget its connections without a word, as load
// balancers do with idle ones: then their bytes go nowhere, and both ends stay open.
class TestRelay {
 public:
  explicit TestRelay(uint16_t server_port) : server_port_(server_port) {
    listener_.Listen();
    thread_ = std::thread([this] { Run(); });
  }
  ~TestRelay() {
    listener_.Stop();
    thread_.join();
  }
  TestRelay(const TestRelay&) = delete;
  TestRelay& operator=(const TestRelay&) = delete;

  std::string target() const { return listener_.target(); }
  // Forgets all connections that were made so far.
  void Forget() { forgotten_ = connections_.load(); }
  size_t connections() const { return connections_; }

 private:
  void Run() {
    std::vector<Fd> ends;  // two for each connection: the client's, then the server's
    while (true) {
      std::vector<pollfd> polled = {{.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
      for (const Fd& end : ends) polled.push_back({.fd = end.get(), .events = POLLIN, .revents = 0});
      poll(polled.data(), polled.size(), -1);
      for (size_t i = 0; i < ends.size(); ++i) {
        if (polled[i + 1].revents == 0 || Forward(ends[i].get(), ends[i ^ 1].get(), i / 2 < forgotten_)) continue;
        ends[i].Reset();  // poll ignores it from now on
        if (ends[i ^ 1].valid()) shutdown(ends[i ^ 1].get(), SHUT_RDWR);
      }
      if (polled[0].revents == 0) continue;
      Fd client = listener_.Accept(), server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!client.valid()) return;
      const sockaddr_in address = TestListener::Loopback(server_port_);
      TRIBUTARY_CHECK(connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
      ends.push_back(std::move(client));
      ends.push_back(std::move(server));
      ++connections_;
    }
  }
  // Returns false at the end of the connection.
  static bool Forward(int from, int to, bool is_forgotten) {
    char buffer[16384];
    const ssize_t n = recv(from, buffer, sizeof(buffer), 0);
    if (n <= 0) return false;
    return is_forgotten || send(to, buffer, static_cast<size_t>(n), MSG_NOSIGNAL) == n;
  }

  const uint16_t server_port_;
  TestListener listener_;
  std::atomic<size_t> connections_{0}, forgotten_{0};
  std::thread thread_;
};

}  // namespace tributary
