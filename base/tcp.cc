#include "base/tcp.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

// After this silence, the kernel checks whether the peer still exists.
constexpr unsigned kKeepaliveS = 15;
// Limit of connections that are not yet accepted. When a reducer restarts, its whole fleet connects at once. A client
// that finds no place retries after 1, 3, 7 s. Linux limits the value to net.core.somaxconn, which is the same by
// default.
constexpr int kBacklog = 4096;
constexpr size_t kReadBytes = 64u << 10;

absl::Status UvStatus(std::string_view operation, std::string_view object, int error) {
  // libuv's codes are negated errno values, except its own codes (for a name that does not resolve).
  if (error <= UV_EAI_ADDRFAMILY && error >= UV_EAI_PROTOCOL) {
    return Error(absl::StatusCode::kUnavailable, fmt::format("{} {}: {}", operation, object, uv_strerror(error)));
  }
  return ErrnoStatus(operation, object, -error);
}

// A connection that cannot be opened or breaks is Unavailable, whatever the reason: a later attempt may succeed.
absl::Status ConnectionStatus(std::string_view operation, std::string_view object, int error) {
  return Error(absl::StatusCode::kUnavailable, Message(UvStatus(operation, object, error)));
}

std::string AddressText(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    uv_ip4_name(&v4, text, sizeof(text));
    return fmt::format("{}:{}", text, ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    uv_ip6_name(&v6, text, sizeof(text));
    return fmt::format("[{}]:{}", text, ntohs(v6.sin6_port));
  }
  return "unknown";
}

std::string PeerText(const uv_tcp_t* tcp) {
  sockaddr_storage address{};
  int size = sizeof(address);
  if (uv_tcp_getpeername(tcp, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  return AddressText(address);
}

void SetConnectionOptions(uv_tcp_t* tcp) {
  // Best effort: a connection without these options works, but it notices a dead peer later.
  uv_tcp_nodelay(tcp, 1);
  uv_tcp_keepalive(tcp, 1, kKeepaliveS);
  // Does not use TCP_USER_TIMEOUT: it also ends connections to a peer that answers but does not read for that long, for
  // example a reducer that is behind. Heartbeats detect whether a peer is alive.
}

class DetachedSocket : public DetachedStream {
 public:
  explicit DetachedSocket(Fd socket) : socket_(std::move(socket)) {}
  absl::StatusOr<std::unique_ptr<Stream>> Adopt(Loop& loop) override {
    return TcpStream::Adopt(loop, std::move(socket_));
  }

 private:
  Fd socket_;
};

template <typename Handle>
uv_handle_t* AsHandle(Handle* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

}  // namespace

// ---- TcpStream

// Outlives its TcpStream until libuv has released the handle, and a name look-up that cannot be cancelled.
struct TcpStream::State {
  explicit State(uv_loop_t* on) : loop(on) {}

  struct Write {
    State* stream;
    std::string bytes;
    uv_write_t request;
  };

  static void OnClosed(uv_handle_t* handle);
  static void OnResolved(uv_getaddrinfo_t* request, int status, addrinfo* addresses);
  static void OnConnected(uv_connect_t* request, int status);
  static void OnAlloc(uv_handle_t*, size_t, uv_buf_t* buffer);
  static void OnRead(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer);
  static void OnWritten(uv_write_t* request, int status);

  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&tcp); }
  void ConnectNext();
  void FinishConnect(absl::Status status);
  void ReportClose(absl::Status status);
  void StartReading();
  void StopReading();
  void CloseHandle();
  void Abandon();  // for a TcpStream that is destroyed
  void DeleteIfUnused();

  uv_loop_t* loop;
  uv_tcp_t tcp{};
  bool has_handle = false;  // from uv_tcp_init to the close callback
  bool resolving = false;
  bool abandoned = false;
  bool reading = false;
  bool ended = false;  // on_close was called

  uv_getaddrinfo_t resolve{};
  uv_connect_t connect{};
  std::vector<sockaddr_storage> addresses;  // still to try, in reverse order
  std::string target;
  std::function<void(absl::Status)> connect_done;
  std::unique_ptr<Timer> failure;  // for a Connect that failed before it began

  Callbacks callbacks;
  size_t writes_in_flight = 0;
  uint64_t handed_bytes = 0;
  uint64_t read_bytes = 0;
  std::string peer = "unknown";
};

void TcpStream::State::DeleteIfUnused() {
  if (abandoned && !has_handle && !resolving) std::unique_ptr<State> state(this);
}

void TcpStream::State::Abandon() {
  abandoned = true;
  if (resolving) uv_cancel(reinterpret_cast<uv_req_t*>(&resolve));
  if (has_handle) {
    CloseHandle();
  } else {
    DeleteIfUnused();
  }
}

void TcpStream::State::CloseHandle() {
  if (!uv_is_closing(AsHandle(&tcp))) uv_close(AsHandle(&tcp), OnClosed);
}

void TcpStream::State::OnClosed(uv_handle_t* handle) {
  auto* self = static_cast<State*>(handle->data);
  self->has_handle = false;
  if (self->abandoned) {
    self->DeleteIfUnused();
  } else if (self->connect_done) {
    self->ConnectNext();  // the previous address did not answer
  }
}

void TcpStream::State::OnResolved(uv_getaddrinfo_t* request, int status, addrinfo* addresses) {
  auto* self = static_cast<State*>(request->data);
  self->resolving = false;
  for (addrinfo* a = addresses; a != nullptr; a = a->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, a->ai_addr, a->ai_addrlen);
    self->addresses.insert(self->addresses.begin(), address);
  }
  uv_freeaddrinfo(addresses);
  if (self->abandoned) return self->DeleteIfUnused();
  if (status != 0) return self->FinishConnect(ConnectionStatus("resolve", self->target, status));
  self->ConnectNext();
}

void TcpStream::State::ConnectNext() {
  if (addresses.empty())
    return FinishConnect(Error(absl::StatusCode::kUnavailable, "resolve " + target + ": no address"));
  sockaddr_storage address = addresses.back();
  addresses.pop_back();
  int error = uv_tcp_init_ex(loop, &tcp, address.ss_family);
  if (error != 0) return FinishConnect(ConnectionStatus("connect", target, error));
  has_handle = true;
  tcp.data = this;
  SetConnectionOptions(&tcp);
  connect.data = this;
  peer = AddressText(address);
  error = uv_tcp_connect(&connect, &tcp, reinterpret_cast<const sockaddr*>(&address), OnConnected);
  if (error != 0) OnConnected(&connect, error);
}

void TcpStream::State::OnConnected(uv_connect_t* request, int status) {
  auto* self = static_cast<State*>(request->data);
  if (self->abandoned) return;
  if (status == 0) return self->FinishConnect(absl::OkStatus());
  if (!self->addresses.empty()) return self->CloseHandle();  // OnClosed then tries the next address
  self->FinishConnect(ConnectionStatus("connect", self->target, status));
}

void TcpStream::State::FinishConnect(absl::Status status) {
  auto done = std::exchange(connect_done, nullptr);
  done(std::move(status));
}

void TcpStream::State::OnAlloc(uv_handle_t*, size_t, uv_buf_t* buffer) {
  // libuv reads and calls back before it requests another buffer. So the streams of a loop, all on one thread, share
  // one buffer.
  static thread_local std::unique_ptr<char[]> shared = std::make_unique<char[]>(kReadBytes);
  *buffer = uv_buf_init(shared.get(), kReadBytes);
}

void TcpStream::State::OnRead(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer) {
  auto* self = static_cast<State*>(stream->data);
  if (size == 0) return;  // EAGAIN
  if (size == UV_EOF) return self->ReportClose(absl::OkStatus());
  if (size < 0) return self->ReportClose(ConnectionStatus("read", self->peer, static_cast<int>(size)));
  self->read_bytes += static_cast<uint64_t>(size);
  self->callbacks.on_data(std::string_view(buffer->base, static_cast<size_t>(size)));
}

void TcpStream::State::OnWritten(uv_write_t* request, int status) {
  std::unique_ptr<Write> write(static_cast<Write*>(request->data));
  State* self = write->stream;
  --self->writes_in_flight;
  if (self->abandoned || self->ended) return;
  if (status != 0) return self->ReportClose(ConnectionStatus("write", self->peer, status));
  if (self->writes_in_flight == 0 && self->callbacks.on_drained) self->callbacks.on_drained();
}

void TcpStream::State::ReportClose(absl::Status status) {
  if (ended || abandoned) return;
  ended = true;
  StopReading();
  if (callbacks.on_close) callbacks.on_close(std::move(status));
}

void TcpStream::State::StartReading() {
  if (reading || ended) return;
  reading = uv_read_start(stream(), OnAlloc, OnRead) == 0;
}

void TcpStream::State::StopReading() {
  if (!reading) return;
  reading = false;
  uv_read_stop(stream());
}

TcpStream::~TcpStream() { state_->Abandon(); }

std::unique_ptr<TcpStream> TcpStream::Connect(Loop& loop, const std::string& host, uint16_t port,
                                              std::function<void(absl::Status)> done) {
  auto* state = new State(loop.raw());
  std::unique_ptr<TcpStream> stream(new TcpStream(state));
  state->target = fmt::format("{}:{}", host, port);
  state->connect_done = std::move(done);
  state->resolve.data = state;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  int error = uv_getaddrinfo(loop.raw(), &state->resolve, State::OnResolved, host.c_str(), std::to_string(port).c_str(),
                             &hints);
  state->resolving = error == 0;
  if (error != 0) {  // the host name is too long; the callback must still run later, as promised
    state->failure = std::make_unique<Timer>(
        loop, [state, error] { state->FinishConnect(ConnectionStatus("resolve", state->target, error)); });
    state->failure->StartOnce(0);
  }
  return stream;
}

absl::StatusOr<std::unique_ptr<TcpStream>> TcpStream::Adopt(Loop& loop, Fd socket) {
  auto* state = new State(loop.raw());
  std::unique_ptr<TcpStream> stream(new TcpStream(state));
  int error = uv_tcp_init(loop.raw(), &state->tcp);
  if (error != 0) return UvStatus("adopt", "socket", error);
  state->has_handle = true;
  state->tcp.data = state;
  error = uv_tcp_open(&state->tcp, socket.get());
  if (error != 0) return UvStatus("adopt", "socket", error);
  socket.Release();
  SetConnectionOptions(&state->tcp);
  state->peer = PeerText(&state->tcp);
  if (state->peer == "unknown") return Error(absl::StatusCode::kUnavailable, "adopt socket: not connected");
  return stream;
}

void TcpStream::Start(Callbacks callbacks) {
  state_->callbacks = std::move(callbacks);
  state_->StartReading();
}

void TcpStream::PauseReading() { state_->StopReading(); }
void TcpStream::ResumeReading() { state_->StartReading(); }

void TcpStream::Write(std::string bytes) {
  if (state_->ended || !state_->has_handle || bytes.empty()) return;
  auto write = std::make_unique<State::Write>(State::Write{state_, std::move(bytes), {}});
  write->request.data = write.get();
  uv_buf_t buffer = uv_buf_init(write->bytes.data(), static_cast<unsigned>(write->bytes.size()));
  if (uv_write(&write->request, state_->stream(), &buffer, 1, State::OnWritten) != 0) return;
  ++state_->writes_in_flight;
  state_->handed_bytes += buffer.len;
  write.release();  // OnWritten owns it now
}

size_t TcpStream::pending_bytes() const {
  return state_->has_handle ? uv_stream_get_write_queue_size(state_->stream()) : 0;
}
uint64_t TcpStream::bytes_written() const { return state_->handed_bytes - pending_bytes(); }
uint64_t TcpStream::bytes_read() const { return state_->read_bytes; }
std::string TcpStream::peer() const { return state_->peer; }

std::unique_ptr<DetachedStream> TcpStream::Detach() {
  uv_os_fd_t fd = -1;
  if (state_->ended || !state_->has_handle || pending_bytes() > 0) return nullptr;
  if (uv_fileno(AsHandle(&state_->tcp), &fd) != 0) return nullptr;
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return nullptr;
  state_->ended = true;
  state_->StopReading();
  // Closing libuv's descriptor leaves the connection open, because the copy keeps it open.
  state_->CloseHandle();
  return std::make_unique<DetachedSocket>(std::move(copy));
}

// ---- TcpListener

struct TcpListener::State {
  uv_tcp_t handle{};
  bool abandoned = false;
  std::function<void(std::unique_ptr<TcpStream>)> on_accept;
};

namespace {

absl::StatusOr<sockaddr_storage> ParseAddress(const std::string& host, uint16_t port) {
  sockaddr_storage address{};
  const std::string numeric = host.empty() ? "::" : host == "localhost" ? "127.0.0.1" : host;
  if (uv_ip4_addr(numeric.c_str(), port, reinterpret_cast<sockaddr_in*>(&address)) == 0) return address;
  if (uv_ip6_addr(numeric.c_str(), port, reinterpret_cast<sockaddr_in6*>(&address)) == 0) return address;
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("listen on {}:{}: not an IPv4 or IPv6 address; use 127.0.0.1 to accept connections from "
                           "this machine only, or 0.0.0.0 to accept connections from all machines",
                           host, port));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Listen(
    Loop& loop, const std::string& host, uint16_t port, std::function<void(std::unique_ptr<TcpStream>)> on_accept) {
  ASSIGN_OR_RETURN(sockaddr_storage address, ParseAddress(host, port));
  const std::string target = fmt::format("{}:{}", host, port);
  auto* state = new State;
  state->on_accept = std::move(on_accept);
  TRIBUTARY_CHECK(uv_tcp_init(loop.raw(), &state->handle) == 0);
  state->handle.data = state;
  std::unique_ptr<TcpListener> listener(new TcpListener(state));

  // libuv sets SO_REUSEADDR, so a restart does not wait for TIME_WAIT of the old connections.
  int error = uv_tcp_bind(&state->handle, reinterpret_cast<const sockaddr*>(&address), 0);
  if (error == UV_EAFNOSUPPORT && host.empty()) return Listen(loop, "0.0.0.0", port, std::move(state->on_accept));
  if (error != 0) return UvStatus("listen on", target, error);
  error = uv_listen(reinterpret_cast<uv_stream_t*>(&state->handle), kBacklog, [](uv_stream_t* server, int status) {
    auto* self = static_cast<State*>(server->data);
    if (status != 0 || self->abandoned) return;  // out of descriptors: libuv has closed the connection
    auto* accepted = new TcpStream::State(server->loop);
    std::unique_ptr<TcpStream> stream(new TcpStream(accepted));
    if (uv_tcp_init(server->loop, &accepted->tcp) != 0) return;
    accepted->has_handle = true;
    accepted->tcp.data = accepted;
    if (uv_accept(server, accepted->stream()) != 0) return;
    SetConnectionOptions(&accepted->tcp);
    accepted->peer = PeerText(&accepted->tcp);
    self->on_accept(std::move(stream));
  });
  if (error != 0) return UvStatus("listen on", target, error);
  return listener;
}

TcpListener::~TcpListener() {
  state_->abandoned = true;
  uv_close(AsHandle(&state_->handle),
           [](uv_handle_t* handle) { std::unique_ptr<State> state(static_cast<State*>(handle->data)); });
}

uint16_t TcpListener::port() const {
  sockaddr_storage address{};
  int size = sizeof(address);
  if (uv_tcp_getsockname(&state_->handle, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace tributary
