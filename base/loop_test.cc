#include "base/loop.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/fd.h"
#include "base/status.h"
#include "base/tcp.h"

namespace tributary {
namespace {

TEST(Loop, RunsPostedTasksInOrderFromAnotherThread) {
  Loop loop;
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.Post([&seen, i] { seen.push_back(i); });
    loop.Post([&] { loop.Stop(); });
  });
  loop.Run();
  other.join();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(Loop, StopsAtOnceIfStopWasCalledBeforeRun) {
  Loop loop;
  loop.Stop();
  loop.Run();
  bool ran = false;
  loop.Post([&] {
    ran = true;
    loop.Stop();
  });
  loop.Run();
  EXPECT_TRUE(ran);
}

// Each timer works until the clock has moved on. So when one of them ends, the other one is due again.
TEST(Loop, TimersThatStartThemselvesAgainDoNotDelayTasks) {
  constexpr int kTurnsMax = 200;
  Loop loop;
  int turns = 0, turns_at_task = 0;
  std::vector<std::unique_ptr<Timer>> timers(2);
  for (std::unique_ptr<Timer>& timer : timers) {
    timer = std::make_unique<Timer>(loop, [&] {
      if (++turns >= kTurnsMax) return loop.Stop();
      const uint64_t until = uv_hrtime() + 2'000'000;
      while (uv_hrtime() < until) continue;
      timer->StartOnce(0);
      if (turns == 1) {
        loop.Post([&] {
          turns_at_task = turns;
          loop.Stop();
        });
      }
    });
    timer->StartOnce(0);
  }
  loop.Run();
  timers.clear();
  EXPECT_GT(turns_at_task, 0) << "no task ran within " << kTurnsMax << " turns";
  EXPECT_LE(turns_at_task, 4);
}

TEST(Loop, DoesNotSleepWhileATimerThatStartedItselfAgainIsDue) {
  constexpr uint64_t kWorkNs = 20'000'000;
  constexpr int kTurns = 20;
  Loop loop;
  ASSERT_EQ(uv_loop_configure(loop.raw(), UV_METRICS_IDLE_TIME), 0);
  int turns = 0;
  std::unique_ptr<Timer> timer = std::make_unique<Timer>(loop, [&] {
    const uint64_t until = uv_hrtime() + kWorkNs;
    while (uv_hrtime() < until) continue;
    if (++turns == kTurns) return loop.Stop();
    timer->StartOnce(0);
  });
  timer->StartOnce(0);
  loop.Run();
  EXPECT_LT(uv_metrics_idle_time(loop.raw()), kTurns * kWorkNs / 2);
}

TEST(Loop, DropsTasksAfterTheStoppingTask) {
  auto kept = std::make_shared<int>(0);
  {
    Loop loop;
    loop.Post([&] { loop.Stop(); });
    loop.Post([kept] { ++*kept; });
    loop.Run();
    EXPECT_EQ(*kept, 0);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(Loop, DestroysHandlesOwnedByTasksThatNeverRan) {
  std::weak_ptr<Timer> owned;
  {
    Loop loop;
    auto timer = std::make_shared<Timer>(loop, [] {});
    owned = timer;
    loop.Post([timer] {});
  }
  EXPECT_TRUE(owned.expired());
}

TEST(ReadWatcher, CallsBackWhileReadableAndStarted) {
  Loop loop;
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  Fd ours(pair[0]), theirs(pair[1]);
  int calls = 0;
  std::unique_ptr<ReadWatcher> watcher;
  Timer end(loop, [&] { loop.Stop(); });
  watcher = std::make_unique<ReadWatcher>(loop, ours.get(), [&] {
    if (++calls < 3) return;
    watcher->Stop();
    end.StartOnce(1);
  });
  ASSERT_EQ(write(theirs.get(), "x", 1), 1);
  watcher->Start();
  loop.Run();
  EXPECT_EQ(calls, 3);
}

TEST(Timer, FiresOnceAndRepeatedly) {
  Loop loop;
  int once = 0, ticks = 0;
  Timer single(loop, [&] { ++once; });
  single.StartOnce(1);
  Timer repeated(loop, [&] {
    if (++ticks == 5) loop.Stop();
  });
  repeated.StartEvery(2);
  loop.Run();
  EXPECT_EQ(once, 1);
  EXPECT_EQ(ticks, 5);
}

TEST(Timer, MayBeDestroyedInsideItsOwnCallback) {
  Loop loop;
  std::unique_ptr<Timer> timer;
  int calls = 0;
  std::string captured = "a string long enough to live on the heap";
  timer = std::make_unique<Timer>(loop, [&, captured] {
    timer.reset();
    calls += captured.empty() ? 0 : 1;  // the closure is still alive
    loop.Stop();
  });
  timer->StartEvery(1);
  loop.Run();
  EXPECT_EQ(calls, 1);
}

TEST(Timer, StopKeepsItFromFiring) {
  Loop loop;
  int calls = 0;
  Timer stopped(loop, [&] { ++calls; });
  stopped.StartOnce(1);
  stopped.Stop();
  Timer end(loop, [&] { loop.Stop(); });
  end.StartOnce(10);
  loop.Run();
  EXPECT_EQ(calls, 0);
}

TEST(SignalWatcher, CallsBackOnTheLoop) {
  Loop loop;
  int calls = 0;
  SignalWatcher watcher(loop, SIGUSR2, [&] {
    ++calls;
    loop.Stop();
  });
  loop.Post([] { raise(SIGUSR2); });
  loop.Run();
  EXPECT_EQ(calls, 1);
}

// A listener and one connection to it, with access to both ends.
class TcpTest : public testing::Test {
 protected:
  void Open() {
    auto listener = TcpListener::Listen(loop_, "127.0.0.1", 0, [this](std::unique_ptr<TcpStream> stream) {
      server_ = std::move(stream);
      StopWhenBoth();
    });
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    client_ = TcpStream::Connect(loop_, "127.0.0.1", listener_->port(), [this](absl::Status status) {
      EXPECT_TRUE(status.ok()) << status;
      connected_ = true;
      StopWhenBoth();
    });
    loop_.Run();
    ASSERT_TRUE(server_ && connected_);
  }
  void StopWhenBoth() {
    if (server_ && connected_) loop_.Stop();
  }

  Loop loop_;
  std::unique_ptr<TcpListener> listener_;
  std::unique_ptr<TcpStream> server_, client_;
  bool connected_ = false;
};

TEST_F(TcpTest, CarriesBytesAndCountsThem) {
  Open();
  std::string received;
  const std::string sent(3'000'000, 'x');
  bool drained = false;
  server_->Start({.on_data =
                      [&](std::string_view bytes) {
                        received.append(bytes);
                        if (received.size() == sent.size()) loop_.Stop();
                      },
                  .on_close = {},
                  .on_drained = {}});
  client_->Start({.on_data = [](std::string_view) {}, .on_close = {}, .on_drained = [&] { drained = true; }});
  client_->Write(sent);
  EXPECT_LE(client_->pending_bytes(), sent.size());
  loop_.Run();
  EXPECT_EQ(received, sent);
  EXPECT_EQ(server_->bytes_read(), sent.size());
  EXPECT_EQ(client_->bytes_written(), sent.size());
  EXPECT_EQ(client_->pending_bytes(), 0u);
  if (!drained) {
    loop_.Post([&] { loop_.Stop(); });
    loop_.Run();
  }
  EXPECT_TRUE(drained);
  EXPECT_EQ(server_->peer().substr(0, 10), "127.0.0.1:");
  EXPECT_EQ(client_->peer(), "127.0.0.1:" + std::to_string(listener_->port()));
}

TEST_F(TcpTest, ReportsAnOrderlyEndOnce) {
  Open();
  int closes = 0;
  server_->Start({.on_data = [](std::string_view) {},
                  .on_close =
                      [&](absl::Status status) {
                        EXPECT_TRUE(status.ok()) << status;
                        ++closes;
                        loop_.Stop();
                      },
                  .on_drained = {}});
  client_.reset();
  loop_.Run();
  EXPECT_EQ(closes, 1);
}

TEST_F(TcpTest, MayBeDestroyedInsideItsOwnCallbacks) {
  Open();
  int data = 0;
  server_->Start({.on_data =
                      [&](std::string_view) {
                        ++data;
                        server_.reset();
                      },
                  .on_close = [&](absl::Status) { ADD_FAILURE() << "callback after the destructor"; },
                  .on_drained = {}});
  client_->Start({.on_data = [](std::string_view) {},
                  .on_close =
                      [&](absl::Status) {
                        client_.reset();
                        loop_.Stop();
                      },
                  .on_drained = {}});
  client_->Write("hello");
  loop_.Run();
  EXPECT_EQ(data, 1);
  EXPECT_FALSE(client_);
}

TEST_F(TcpTest, DestroyedWithUnwrittenBytesLeaksNothing) {
  Open();
  client_->Start({.on_data = [](std::string_view) {}, .on_close = {}, .on_drained = {}});
  client_->Write(std::string(64u << 20, 'x'));
  EXPECT_GT(client_->pending_bytes(), 0u);
}

TEST_F(TcpTest, PausedReadingDeliversNothingUntilResumed) {
  Open();
  std::string received;
  server_->Start({.on_data =
                      [&](std::string_view bytes) {
                        received.append(bytes);
                        loop_.Stop();
                      },
                  .on_close = {},
                  .on_drained = {}});
  server_->PauseReading();
  client_->Start({.on_data = [](std::string_view) {}, .on_close = {}, .on_drained = [&] { loop_.Stop(); }});
  client_->Write("held");
  loop_.Run();
  EXPECT_EQ(received, "");
  server_->ResumeReading();
  loop_.Run();
  EXPECT_EQ(received, "held");
}

// A reducer that is behind may not read for minutes, but its kernel still answers.
TEST_F(TcpTest, KeepsAPeerThatDoesNotRead) {
  Open();
  constexpr size_t kBytes = 64u << 20;
  size_t received = 0;
  absl::Status closed;
  server_->Start({.on_data =
                      [&](std::string_view bytes) {
                        received += bytes.size();
                        if (received == kBytes) loop_.Stop();
                      },
                  .on_close = {},
                  .on_drained = {}});
  server_->PauseReading();
  client_->Start({.on_data = [](std::string_view) {},
                  .on_close =
                      [&](const absl::Status& why) {
                        closed = why;
                        loop_.Stop();
                      },
                  .on_drained = {}});
  client_->Write(std::string(kBytes, 'x'));
  Timer resume(loop_, [&] { server_->ResumeReading(); });
  resume.StartOnce(17'000);
  loop_.Run();
  EXPECT_TRUE(closed.ok()) << closed;
  EXPECT_EQ(received, kBytes);
}

TEST_F(TcpTest, DetachedSocketContinuesOnAnotherLoop) {
  Open();
  client_->Start({.on_data = [](std::string_view) {}, .on_close = {}, .on_drained = {}});
  std::string first, second;
  std::unique_ptr<DetachedStream> detached;
  server_->Start({.on_data =
                      [&](std::string_view bytes) {
                        first.append(bytes);
                        detached = server_->Detach();
                        server_.reset();
                        client_->Write("second");
                        loop_.Stop();
                      },
                  .on_close = {},
                  .on_drained = {}});
  client_->Write("first");
  loop_.Run();
  EXPECT_EQ(first, "first");
  ASSERT_NE(detached, nullptr);

  Loop other;
  auto adopted = detached->Adopt(other);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  (*adopted)->Start({.on_data =
                         [&](std::string_view bytes) {
                           second.append(bytes);
                           other.Stop();
                         },
                     .on_close = {},
                     .on_drained = {}});
  other.Run();
  EXPECT_EQ(second, "second");
}

TEST(TcpStream, ConnectToClosedPortIsUnavailable) {
  Loop loop;
  uint16_t port = 0;
  {
    auto listener = TcpListener::Listen(loop, "127.0.0.1", 0, [](std::unique_ptr<TcpStream>) {});
    ASSERT_TRUE(listener.ok());
    port = (*listener)->port();
  }
  absl::Status result;
  loop.Post([] {});
  auto stream = TcpStream::Connect(loop, "127.0.0.1", port, [&](absl::Status status) {
    result = std::move(status);
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(result.code(), absl::StatusCode::kUnavailable) << result;
  EXPECT_NE(Message(result).find("127.0.0.1:" + std::to_string(port)), std::string::npos) << result;
}

TEST(TcpStream, ConnectWithoutAFileDescriptorIsUnavailable) {
  Loop loop;
  absl::Status result;
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  auto stream = TcpStream::Connect(loop, "127.0.0.1", 1, [&](absl::Status status) {
    result = std::move(status);
    loop.Stop();
  });
  loop.Run();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(result.code(), absl::StatusCode::kUnavailable) << result;
  EXPECT_NE(Message(result).find("EMFILE"), std::string::npos) << result;
}

TEST(TcpStream, ConnectToAnImpossibleNameFailsLater) {
  Loop loop;
  absl::Status result;
  auto stream = TcpStream::Connect(loop, std::string(3000, 'a'), 1, [&](absl::Status status) {
    result = std::move(status);
    loop.Stop();
  });
  EXPECT_TRUE(result.ok());
  loop.Run();
  EXPECT_FALSE(result.ok());
}

TEST(TcpStream, DestroyedBeforeItIsConnectedStaysSilent) {
  Loop loop;
  auto stream = TcpStream::Connect(loop, "localhost", 1, [](absl::Status) { ADD_FAILURE() << "called"; });
  stream.reset();
}

TEST(TcpStream, AdoptRefusesUnconnectedSockets) {
  Loop loop;
  auto adopted = TcpStream::Adopt(loop, Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  EXPECT_FALSE(adopted.ok());
}

TEST(TcpListener, AddressInUseIsAlreadyExists) {
  Loop loop;
  auto first = TcpListener::Listen(loop, "127.0.0.1", 0, [](std::unique_ptr<TcpStream>) {});
  ASSERT_TRUE(first.ok());
  auto second = TcpListener::Listen(loop, "127.0.0.1", (*first)->port(), [](std::unique_ptr<TcpStream>) {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
}

// The clients connect while the loop is busy. Each client closes at once, but keeps its place in the queue.
TEST(TcpListener, QueuesAFleetThatConnectsAtOnce) {
  int somaxconn = 0;
  std::ifstream("/proc/sys/net/core/somaxconn") >> somaxconn;
  const int count = std::min(2000, somaxconn);
  ASSERT_GT(count, 0);
  Loop loop;
  int accepted = 0;
  auto listener = TcpListener::Listen(loop, "127.0.0.1", 0, [&](std::unique_ptr<TcpStream>) {
    if (++accepted == count) loop.Stop();
  });
  ASSERT_TRUE(listener.ok()) << Message(listener.status());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons((*listener)->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < count; ++i) {
    Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int once = 1;  // a SYN that finds no place is not sent again: the connection fails
    ASSERT_EQ(setsockopt(client.get(), IPPROTO_TCP, TCP_SYNCNT, &once, sizeof(once)), 0);
    ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << i;
  }
  loop.Run();
  EXPECT_EQ(accepted, count);
}

TEST(TcpListener, RefusesHostNames) {
  Loop loop;
  auto listener = TcpListener::Listen(loop, "reducer.example", 0, [](std::unique_ptr<TcpStream>) {});
  EXPECT_EQ(listener.status().code(), absl::StatusCode::kInvalidArgument) << listener.status();
}

TEST(TcpListener, EmptyHostListensOnAllAddresses) {
  Loop loop;
  auto listener = TcpListener::Listen(loop, "", 0, [&](std::unique_ptr<TcpStream>) { loop.Stop(); });
  ASSERT_TRUE(listener.ok()) << listener.status();
  auto stream = TcpStream::Connect(loop, "127.0.0.1", (*listener)->port(), [](absl::Status) {});
  loop.Run();
}

}  // namespace
}  // namespace tributary
