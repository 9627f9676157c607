#include "cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace tributary::cli {
namespace {

// Runs between fork and exec, so it makes only calls that are safe there. Does not return.
[[noreturn]] void Become(const Program::Options& options, char* const* arguments, pid_t parent, int report) {
  if (options.helper) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(0);  // the parent was already gone
  }
  if (!options.output_path.empty()) {
    int out = open(options.output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (out >= 0) {
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
    }
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in >= 0) dup2(in, STDIN_FILENO);
  }
  sigprocmask(SIG_SETMASK, &options.signal_mask, nullptr);
  execvp(arguments[0], arguments);
  int error = errno;
  // The read end receives the number. After a successful exec it would see the end of the pipe.
  (void)!write(report, &error, sizeof(error));
  _exit(127);
}

}  // namespace

absl::StatusOr<Program> Program::Start(const Options& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe", "for " + options.arguments[0], errno);
  Fd read_end(ends[0]), write_end(ends[1]);
  std::vector<char*> arguments;
  for (const std::string& argument : options.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return ErrnoStatus("start", options.arguments[0], errno);
  if (pid == 0) Become(options, arguments.data(), parent, write_end.get());
  Program child;
  child.pid_ = pid;
  child.ended_ = false;
  write_end.Reset();
  int error = 0;
  if (read(read_end.get(), &error, sizeof(error)) == sizeof(error)) {
    child.Kill();
    return ErrnoStatus("run", options.arguments[0], error);
  }
  return child;
}

Program& Program::operator=(Program&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = other.pid_;
    ended_ = std::exchange(other.ended_, true);
    wait_status_ = other.wait_status_;
    cpu_ns_ = other.cpu_ns_;
  }
  return *this;
}

bool Program::running() {
  if (ended_) return false;
  struct rusage usage;
  if (wait4(pid_, &wait_status_, WNOHANG, &usage) != pid_) return true;
  ended_ = true;
  for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
    cpu_ns_ += static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_usec) * 1000;
  }
  return false;
}

void Program::Signal(int number) const {
  if (!ended_) kill(pid_, number);
}

void Program::Kill() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, &wait_status_, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
}

int Program::exit_code() const { return WIFEXITED(wait_status_) ? WEXITSTATUS(wait_status_) : 128 + term_signal(); }

int Program::term_signal() const { return WIFSIGNALED(wait_status_) ? WTERMSIG(wait_status_) : 0; }

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
  std::string own_directory;
  if (n > 0) {
    std::string path(self, static_cast<size_t>(n));
    own_directory = path.substr(0, path.rfind('/'));
    if (access((own_directory + "/" + name).c_str(), X_OK) == 0) return own_directory + "/" + name;
  }
  const char* variable = getenv("PATH");
  std::string_view directories = variable ? variable : "";
  while (!directories.empty()) {
    size_t colon = directories.find(':');
    std::string path = fmt::format("{}/{}", directories.substr(0, colon), name);
    if (access(path.c_str(), X_OK) == 0) return path;
    directories.remove_prefix(colon == std::string_view::npos ? directories.size() : colon + 1);
  }
  return Error(
      absl::StatusCode::kNotFound,
      fmt::format("{} is neither in {} nor in PATH: install it in the directory of tributary", name, own_directory));
}

}  // namespace tributary::cli
