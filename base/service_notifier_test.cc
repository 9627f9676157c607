#include "base/service_notifier.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

#include "base/directory_testing.h"
#include "base/types.h"

namespace tributary {
namespace {

// The service manager's end.
class Manager {
 public:
  explicit Manager(const std::string& name) : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {.sun_family = AF_UNIX};
    name.copy(address.sun_path, name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
  std::string Read() {
    char buffer[512];
    const ssize_t size = recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(buffer, static_cast<size_t>(size));
  }

 private:
  Fd socket_;
};

TEST(ServiceNotifier, ReportsToAPathAndToAnAbstractName) {
  TestDirectory directory;
  for (const std::string& name : {directory.path() + "/notify", fmt::format("@tributary-test-{}", getpid())}) {
    Manager manager(name);
    ServiceNotifier notifier = ServiceNotifier::TakeFromEnvironment();
    notifier.Ready("two\nlines");
    EXPECT_EQ(manager.Read(), "READY=1\nSTATUS=two\\x0alines\n");
    notifier.Reloading();
    EXPECT_THAT(manager.Read(), testing::MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*\nSTATUS=reloading\n"));
    notifier.Status("well");
    EXPECT_EQ(manager.Read(), "STATUS=well\n");
    notifier.Ping();
    EXPECT_EQ(manager.Read(), "WATCHDOG=1\n");
    notifier.Stopping();
    EXPECT_EQ(manager.Read(), "STOPPING=1\nSTATUS=stopping\n");
  }
}

TEST(ServiceNotifier, TakesItsVariablesOutOfTheEnvironment) {
  Manager manager(fmt::format("@tributary-test-{}", getpid()));
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(ServiceNotifier::TakeFromEnvironment().watchdog_ns(), 3 * kNsPerSecond);
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) EXPECT_EQ(getenv(name), nullptr);
  EXPECT_EQ(ServiceNotifier::TakeFromEnvironment().watchdog_ns(), 0);
}

TEST(ServiceNotifier, IgnoresAWatchdogOfAnotherProcess) {
  Manager manager(fmt::format("@tributary-test-{}", getpid()));
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceNotifier::TakeFromEnvironment().watchdog_ns(), 0);
}

TEST(ServiceNotifier, WarnsOnceIfTheManagerIsMissing) {
  for (const char* name : {"/nonexistent/notify", "relative"}) {
    setenv("NOTIFY_SOCKET", name, 1);
    testing::internal::CaptureStderr();
    ServiceNotifier notifier = ServiceNotifier::TakeFromEnvironment();
    notifier.Ready("");
    notifier.Ping();
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, testing::HasSubstr("notified"));
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  }
}

}  // namespace
}  // namespace tributary
