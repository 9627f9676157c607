#include "k8s-collector/watch/program_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <unistd.h>
#include <uv.h>

#include <csignal>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "base/trim.h"
#include "base/utf8.h"
#include "k8s-collector/watch/hidden_tokens.h"

namespace tributary {
namespace {

constexpr size_t kReadBytes = 64u << 10;
constexpr unsigned kFirstOtherFd = 3;
constexpr size_t kErrorBytesKept = 4096;

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// uv_spawn uses execvp(), which gives a file of an unknown format to /bin/sh. So this function checks the first bytes.
absl::Status CheckFormat(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char bytes[4];
  const ssize_t size = file.get() < 0 ? -1 : read(file.get(), bytes, sizeof bytes);
  if (size < 0) return absl::OkStatus();  // uv_spawn fails, or the file can only be executed: a shell cannot read it
  const std::string_view start(bytes, static_cast<size_t>(size));
  if (start == "\177ELF" || start.starts_with("#!")) return absl::OkStatus();
  return Error(
      absl::StatusCode::kInvalidArgument,
      fmt::format("start {}: exec format error: it is neither an ELF program nor a script that begins with #!", path));
}

std::string LastLine(std::string_view text) {
  text = TrimEnd(text, kAsciiBlanks);
  text.remove_prefix(text.find_last_of("\r\n") + 1);  // npos + 1 is 0
  return std::string(CutUtf8(HideTokens(Trim(text, kAsciiBlanks)), ProgramRun::kErrorLineBytesMax));
}

}  // namespace

struct ProgramRun::State {
  // The read end of a pipe from the program.
  struct Pipe {
    uv_pipe_t handle;
    State* owner = nullptr;
    bool is_open = false;
  };

  State(Loop& on, const Limits& within, std::function<void(Outcome)> then)
      : loop(on), limits(within), done(std::move(then)), deadline(std::make_unique<Timer>(on, [this] { OnLate(); })) {}

  absl::Status Spawn(Program& program);
  absl::Status OpenPipe(Pipe& pipe, Fd& write_end);
  void ClosePipe(Pipe& pipe);
  void CloseProcess();
  void Kill() const { kill(-pid, SIGKILL); }
  void OnBytes(Pipe& pipe, std::string_view bytes);
  void OnExit(int64_t code, int signal);
  void OnLate();
  void FinishIfComplete();
  void Finish(Ending ending);
  void FreeIfUnused();

  static void OnAlloc(uv_handle_t*, size_t, uv_buf_t* buffer) {
    static thread_local std::unique_ptr<char[]> shared = std::make_unique<char[]>(kReadBytes);
    *buffer = uv_buf_init(shared.get(), kReadBytes);
  }
  static void OnRead(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer) {
    auto& pipe = *static_cast<Pipe*>(stream->data);
    if (size > 0) return pipe.owner->OnBytes(pipe, {buffer->base, static_cast<size_t>(size)});
    if (size == 0) return;  // EAGAIN
    State* self = pipe.owner;
    self->ClosePipe(pipe);
    self->FinishIfComplete();
  }
  static void OnClosed(uv_handle_t* handle) {
    State* self = static_cast<State*>(handle->data);
    --self->closing;
    self->FreeIfUnused();
  }

  Loop& loop;
  const Limits limits;
  std::function<void(Outcome)> done;  // null after its call
  std::unique_ptr<Timer> deadline;    // for the program, then for its pipes
  uv_process_t process;
  pid_t pid = -1;
  bool has_process = false;  // its handle is open
  bool has_ended = false;
  bool has_looked_again = false;  // after the deadline
  bool is_abandoned = false;
  int closing = 0;  // handles that libuv closes
  Pipe out, err;
  std::string errors;
  Outcome outcome;
};

absl::Status ProgramRun::State::OpenPipe(Pipe& pipe, Fd& write_end) {
  // Not the socket pair that libuv would make: a program cannot open a socket as /dev/stderr.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe", "for a program", errno);
  Fd read_end(ends[0]);
  write_end.Reset(ends[1]);
  pipe.owner = this;
  TRIBUTARY_CHECK(uv_pipe_init(loop.raw(), &pipe.handle, 0) == 0);
  pipe.handle.data = &pipe;
  pipe.is_open = true;
  if (const int error = uv_pipe_open(&pipe.handle, read_end.get()); error != 0) {
    return ErrnoStatus("read", "a pipe from a program", -error);
  }
  read_end.Release();
  return absl::OkStatus();
}

absl::Status ProgramRun::State::Spawn(Program& program) {
  RETURN_IF_ERROR(CheckFormat(program.path));
  Fd out_end, err_end;
  RETURN_IF_ERROR(OpenPipe(out, out_end));
  RETURN_IF_ERROR(OpenPipe(err, err_end));
  std::vector<char*> arguments = Pointers(program.arguments), environment = Pointers(program.environment);
  uv_stdio_container_t stdio[3] = {};
  stdio[0].flags = UV_IGNORE;  // /dev/null
  stdio[1].flags = stdio[2].flags = UV_INHERIT_FD;
  stdio[1].data.fd = out_end.get();
  stdio[2].data.fd = err_end.get();
  uv_process_options_t options = {};
  options.file = program.path.c_str();
  options.args = arguments.data();
  options.env = environment.data();
  options.flags = UV_PROCESS_DETACHED;  // setsid()
  options.stdio_count = 3;
  options.stdio = stdio;
  options.exit_cb = [](uv_process_t* handle, int64_t code, int signal) {
    static_cast<State*>(handle->data)->OnExit(code, signal);
  };
  // libcurl opens sockets without close-on-exec. Fails on kernels before 5.11: the program then has these sockets.
  close_range(kFirstOtherFd, ~0u, CLOSE_RANGE_CLOEXEC);
  const int error = uv_spawn(loop.raw(), &process, &options);
  process.data = this;
  has_process = true;  // libuv has initialized the handle, also after an error
  if (error != 0) return ErrnoStatus("start", program.path, -error);
  pid = process.pid;
  for (Pipe* pipe : {&out, &err}) {
    uv_read_start(reinterpret_cast<uv_stream_t*>(&pipe->handle), OnAlloc, OnRead);
  }
  deadline->StartOnce(limits.run_ms_max);
  return absl::OkStatus();
}

void ProgramRun::State::ClosePipe(Pipe& pipe) {
  if (!std::exchange(pipe.is_open, false)) return;
  ++closing;
  pipe.handle.data = this;
  uv_close(reinterpret_cast<uv_handle_t*>(&pipe.handle), OnClosed);
}

void ProgramRun::State::CloseProcess() {
  if (!std::exchange(has_process, false)) return;
  ++closing;
  uv_close(reinterpret_cast<uv_handle_t*>(&process), OnClosed);
}

void ProgramRun::State::OnBytes(Pipe& pipe, std::string_view bytes) {
  if (&pipe == &err) {
    errors += bytes;
    if (errors.size() > 2 * kErrorBytesKept) errors.erase(0, errors.size() - kErrorBytesKept);
    return;
  }
  outcome.output += bytes;
  if (outcome.output.size() <= limits.output_bytes_max) return;
  Kill();
  Finish(Ending::kWroteTooMuch);
}

void ProgramRun::State::OnExit(int64_t code, int signal) {
  has_ended = true;
  CloseProcess();
  if (done == nullptr) return;
  outcome.ending = signal != 0 ? Ending::kSignaled : Ending::kExited;
  outcome.code = signal != 0 ? signal : static_cast<int>(code);
  has_looked_again = false;
  deadline->StartOnce(limits.held_ms_max);
  FinishIfComplete();
}

void ProgramRun::State::OnLate() {
  // If this process was stopped for a while, the end of the program and of its output may wait to be read.
  if (!std::exchange(has_looked_again, true)) return deadline->StartOnce(0);
  if (!has_ended) {
    Kill();
    return Finish(Ending::kTimedOut);
  }
  if (!out.is_open) return Finish(outcome.ending);
  // The program's process id may be in use again only if its process group is empty. That is unlikely here, and so is
  // its reuse within a second.
  Kill();
  Finish(Ending::kOutputHeld);
}

void ProgramRun::State::FinishIfComplete() {
  if (done != nullptr && has_ended && !out.is_open && !err.is_open) Finish(outcome.ending);
}

void ProgramRun::State::Finish(Ending ending) {
  deadline->Stop();
  ClosePipe(out);
  ClosePipe(err);
  outcome.ending = ending;
  outcome.last_error_line = LastLine(errors);
  auto then = std::exchange(done, nullptr);
  then(std::move(outcome));  // may abandon this
}

void ProgramRun::State::FreeIfUnused() {
  if (is_abandoned && closing == 0) delete this;
}

ProgramRun::ProgramRun(std::unique_ptr<State> state) : state_(state.release()) {}

ProgramRun::~ProgramRun() {
  // After the end of the program, a process of its group may still hold its output.
  const bool is_running = !state_->has_ended || state_->done != nullptr;
  if (state_->pid > 0 && is_running) state_->Kill();
  state_->done = nullptr;
  state_->deadline.reset();
  state_->ClosePipe(state_->out);
  state_->ClosePipe(state_->err);
  state_->CloseProcess();
  state_->is_abandoned = true;
  state_->FreeIfUnused();
}

bool ProgramRun::has_ended() const { return state_->has_ended; }

absl::StatusOr<std::unique_ptr<ProgramRun>> ProgramRun::Start(Loop& loop, Program program, Limits limits,
                                                              std::function<void(Outcome)> done) {
  std::unique_ptr<ProgramRun> run(new ProgramRun(std::make_unique<State>(loop, limits, std::move(done))));
  RETURN_IF_ERROR(run->state_->Spawn(program));
  return run;
}

}  // namespace tributary
