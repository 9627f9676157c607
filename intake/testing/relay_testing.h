#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/tcp.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

// For tests: a relay between collectors and a reducer. Counts the chunks of symbol tables that it passes on, and can
// cut connections.

namespace tributary::intake {

class TestRelay {
 public:
  struct Carried {
    uint64_t begun = 0, ended = 0;  // number of chunks at offset 0, and of last chunks
    uint64_t bytes = 0;             // of all chunks
    uint64_t first_offset = 0;      // of the first chunk
  };

  TestRelay(Loop& loop, uint16_t to) : loop_(loop), to_(to) {
    listener_ = TcpListener::Listen(loop, "127.0.0.1", 0, [this](std::unique_ptr<TcpStream> stream) {
                  Accept(std::move(stream));
                }).value();
  }
  uint16_t port() const { return listener_->port(); }

  // If it returns true, the relay cuts the connection in the middle of this chunk's frame.
  std::function<bool(const SymbolChunk&)> cut_in;

  const std::map<ExecutableId, Carried>& carried() const { return carried_; }
  Carried CarriedOf(const ExecutableId& id) const {
    auto it = carried_.find(id);
    return it == carried_.end() ? Carried{} : it->second;
  }
  void Forget() { carried_.clear(); }
  // Cuts open connection number `n`, from 0. Does nothing if there are fewer connections.
  void Cut(size_t n) {
    Sweep();
    if (n < pairs_.size()) Close(*std::next(pairs_.begin(), static_cast<std::ptrdiff_t>(n)));
  }
  size_t cuts() const { return cuts_; }

 private:
  struct Pair {
    std::unique_ptr<TcpStream> near, far;
    std::string unsent;  // bytes of the incomplete frame
    bool open = true;
  };

  void Accept(std::unique_ptr<TcpStream> near) {
    Sweep();
    Pair& pair = pairs_.emplace_back();
    pair.near = std::move(near);
    pair.far = TcpStream::Connect(loop_, "127.0.0.1", to_, [this, &pair](const absl::Status& status) {
      if (!status.ok()) return Close(pair);
      pair.far->Start({.on_data = [&pair](std::string_view bytes) { pair.near->Write(std::string(bytes)); },
                       .on_close = [this, &pair](const absl::Status&) { Close(pair); },
                       .on_drained = {}});
      pair.near->Start({.on_data = [this, &pair](std::string_view bytes) { Carry(pair, bytes); },
                        .on_close = [this, &pair](const absl::Status&) { Close(pair); },
                        .on_drained = {}});
    });
  }

  // Passes on complete frames.
  void Carry(Pair& pair, std::string_view bytes) {
    pair.unsent += bytes;
    while (pair.open && pair.unsent.size() >= kHeaderBytes) {
      uint32_t stored = 0;
      std::memcpy(&stored, pair.unsent.data() + 20, sizeof(stored));
      if (pair.unsent.size() < kHeaderBytes + stored) return;
      std::string frame = pair.unsent.substr(0, kHeaderBytes + stored);
      pair.unsent.erase(0, frame.size());
      if (!Look(frame)) {
        pair.far->Write(frame.substr(0, frame.size() / 2));
        ++cuts_;
        return Close(pair);
      }
      pair.far->Write(std::move(frame));
    }
  }

  bool Look(const std::string& bytes) {
    FrameDecoder decoder;
    decoder.Append(bytes);
    Frame frame;
    if (!*decoder.Next(&frame) || frame.type != MessageType::kSymbolChunk) return true;
    absl::StatusOr<SymbolChunk> chunk = DecodeSymbolChunk(frame.payload);
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    if (!chunk.ok() || !chunk->unavailable.empty()) return true;
    if (cut_in && cut_in(*chunk)) return false;
    const bool first = !carried_.contains(chunk->id);
    Carried& carried = carried_[chunk->id];
    if (first) carried.first_offset = chunk->offset;
    carried.begun += chunk->offset == 0;
    carried.bytes += chunk->bytes.size();
    carried.ended += chunk->offset + chunk->bytes.size() == chunk->total_bytes;
    return true;
  }

  static void Close(Pair& pair) {
    pair.open = false;
    pair.near.reset();
    pair.far.reset();
  }
  void Sweep() {
    pairs_.remove_if([](const Pair& pair) { return !pair.open; });
  }

  Loop& loop_;
  const uint16_t to_;
  std::list<Pair> pairs_;
  std::unique_ptr<TcpListener> listener_;
  std::map<ExecutableId, Carried> carried_;
  size_t cuts_ = 0;
};

}  // namespace tributary::intake
