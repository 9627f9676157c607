#include "intake/wire/messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

capnp::Text::Reader TextOf(const std::string& text, std::string& cut, size_t bytes_max) {
  if (text.size() <= bytes_max) return {text.c_str(), text.size()};
  cut = text.substr(0, bytes_max);
  return {cut.c_str(), cut.size()};
}

absl::Status ReadText(capnp::Text::Reader text, std::string_view name, size_t bytes_max, std::string* out) {
  if (text.size() > bytes_max) {
    return Malformed(fmt::format("{}: {} bytes, but at most {} are allowed", name, text.size(), bytes_max));
  }
  out->assign(ViewOf(text));
  return absl::OkStatus();
}

void WriteId(wire::ExecutableId::Builder to, const ExecutableId& id) {
  to.setKind(static_cast<uint8_t>(id.kind()));
  to.setBytes(DataOf(id.view()));
}

absl::Status ReadId(wire::ExecutableId::Reader from, ExecutableId* out) {
  auto id = ExecutableId::Make(static_cast<ExecutableIdKind>(from.getKind()), ViewOf(from.getBytes()));
  if (!id || !id->known()) return Malformed("an executable id is invalid");
  *out = *id;
  return absl::OkStatus();
}

void WriteSession(wire::Hello::Builder to, const SessionInfo& session) {
  std::string cut;
  to.setSessionId(capnp::Data::Reader(session.session_id.data(), session.session_id.size()));
  to.setNodeId(TextOf(session.node_id, cut, kTextBytesMax));
  to.setBootId(TextOf(session.boot_id, cut, kTextBytesMax));
  to.setHostName(TextOf(session.host_name, cut, kTextBytesMax));
  to.setKernelRelease(TextOf(session.kernel_release, cut, kTextBytesMax));
  to.setArchitecture(TextOf(session.architecture, cut, kTextBytesMax));
  to.setAgentVersion(TextOf(session.agent_version, cut, kTextBytesMax));
  to.setCpuCount(session.cpu_count);
  to.setSampleRateHz(session.sample_rate_hz);
}

absl::Status ReadSession(wire::Hello::Reader from, SessionInfo* session) {
  RETURN_IF_ERROR(ReadSessionId(from.getSessionId(), &session->session_id));
  RETURN_IF_ERROR(ReadText(from.getNodeId(), "node id", kTextBytesMax, &session->node_id));
  RETURN_IF_ERROR(ReadText(from.getBootId(), "boot id", kTextBytesMax, &session->boot_id));
  RETURN_IF_ERROR(ReadText(from.getHostName(), "host name", kTextBytesMax, &session->host_name));
  RETURN_IF_ERROR(ReadText(from.getKernelRelease(), "kernel release", kTextBytesMax, &session->kernel_release));
  RETURN_IF_ERROR(ReadText(from.getArchitecture(), "architecture", kTextBytesMax, &session->architecture));
  RETURN_IF_ERROR(ReadText(from.getAgentVersion(), "agent version", kTextBytesMax, &session->agent_version));
  session->cpu_count = from.getCpuCount();
  session->sample_rate_hz = from.getSampleRateHz();
  if (session->node_id.empty()) return Malformed("node id is empty");
  return absl::OkStatus();
}

}  // namespace

std::string EncodeHello(const Hello& hello) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Hello>();
  root.setVersionMin(hello.version_min);
  root.setVersionMax(hello.version_max);
  root.setFeatures(hello.features);
  root.setRole(static_cast<uint16_t>(hello.role));
  WriteSession(root, hello.session);
  root.setDictionaryGeneration(hello.dictionary_generation);
  WriteCounts(root.initSent(), hello.sent);
  root.setNextSequence(hello.next_sequence);
  WriteClock(root.initClock(), hello.clock);
  std::string cut;
  root.setToken(TextOf(hello.token, cut, kTokenBytesMax));
  return ToPayload(message);
}

absl::StatusOr<Hello> DecodeHello(std::string_view payload) {
  return ReadPayload<wire::Hello, Hello>(payload, [](wire::Hello::Reader root, Hello* hello) -> absl::Status {
    hello->version_min = root.getVersionMin();
    hello->version_max = root.getVersionMax();
    if (hello->version_min > hello->version_max)
      return Malformed("Hello: the lowest protocol version is above the highest");
    hello->features = root.getFeatures();
    hello->role = static_cast<Role>(root.getRole());
    RETURN_IF_ERROR(ReadSession(root, &hello->session));
    hello->dictionary_generation = root.getDictionaryGeneration();
    hello->sent = ReadCounts(root.getSent());
    hello->next_sequence = root.getNextSequence();
    if (hello->next_sequence == 0)
      return Malformed("Hello: the next sequence number is 0, but sequence numbers start at 1");
    hello->clock = ReadClock(root.getClock());
    return ReadText(root.getToken(), "token", kTokenBytesMax, &hello->token);
  });
}

std::string EncodeWelcome(const Welcome& welcome) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Welcome>();
  root.setVersion(welcome.version);
  root.setFeatures(welcome.features);
  root.setDurableSequence(welcome.durable_sequence);
  root.setDictionaryKept(welcome.dictionary_kept);
  WriteCounts(root.initHave(), welcome.have);
  root.setCreditBytes(welcome.credit_bytes);
  root.setDictionaryNodesMax(welcome.dictionary_nodes_max);
  root.setHeartbeatMs(welcome.heartbeat_ms);
  return ToPayload(message);
}

absl::StatusOr<Welcome> DecodeWelcome(std::string_view payload) {
  return ReadPayload<wire::Welcome, Welcome>(payload, [](wire::Welcome::Reader root, Welcome* welcome) -> absl::Status {
    welcome->version = root.getVersion();
    welcome->features = root.getFeatures();
    welcome->durable_sequence = root.getDurableSequence();
    welcome->dictionary_kept = root.getDictionaryKept();
    welcome->have = ReadCounts(root.getHave());
    welcome->credit_bytes = root.getCreditBytes();
    welcome->dictionary_nodes_max = root.getDictionaryNodesMax();
    welcome->heartbeat_ms = root.getHeartbeatMs();
    return absl::OkStatus();
  });
}

std::string EncodeAck(uint64_t sequence) {
  capnp::MallocMessageBuilder message;
  message.initRoot<wire::Ack>().setSequence(sequence);
  return ToPayload(message);
}

absl::StatusOr<uint64_t> DecodeAck(std::string_view payload) {
  return ReadPayload<wire::Ack, uint64_t>(payload, [](wire::Ack::Reader root, uint64_t* sequence) -> absl::Status {
    *sequence = root.getSequence();
    return absl::OkStatus();
  });
}

std::string EncodeNeedDictionary(uint32_t generation) {
  capnp::MallocMessageBuilder message;
  message.initRoot<wire::NeedDictionary>().setGeneration(generation);
  return ToPayload(message);
}

absl::StatusOr<uint32_t> DecodeNeedDictionary(std::string_view payload) {
  return ReadPayload<wire::NeedDictionary, uint32_t>(
      payload, [](wire::NeedDictionary::Reader root, uint32_t* generation) -> absl::Status {
        *generation = root.getGeneration();
        return absl::OkStatus();
      });
}

std::string EncodeNeedSymbols(const std::vector<SymbolRequest>& requests) {
  TRIBUTARY_CHECK(requests.size() <= kNeedSymbolsMax);
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::NeedSymbols>();
  const auto count = static_cast<unsigned>(requests.size());
  auto ids = root.initIds(count);
  for (unsigned i = 0; i < count; ++i) WriteId(ids[i], requests[i].id);
  if (std::all_of(requests.begin(), requests.end(), [](const SymbolRequest& r) { return r.part.offset == 0; })) {
    return ToPayload(message);
  }
  auto parts = root.initParts(count);
  for (unsigned i = 0; i < count; ++i) {
    parts[i].setOffset(requests[i].part.offset);
    parts[i].setTotalBytes(requests[i].part.total_bytes);
    parts[i].setRawBytes(requests[i].part.raw_bytes);
    parts[i].setKey(requests[i].part.key);
  }
  return ToPayload(message);
}

absl::StatusOr<std::vector<SymbolRequest>> DecodeNeedSymbols(std::string_view payload) {
  return ReadPayload<wire::NeedSymbols, std::vector<SymbolRequest>>(
      payload, [](wire::NeedSymbols::Reader root, std::vector<SymbolRequest>* requests) -> absl::Status {
        const auto ids = root.getIds();
        if (ids.size() > kNeedSymbolsMax) {
          return Malformed(fmt::format("NeedSymbols: {} ids, but at most {} are allowed", ids.size(), kNeedSymbolsMax));
        }
        for (const auto& id : ids) RETURN_IF_ERROR(ReadId(id, &requests->emplace_back().id));
        const auto parts = root.getParts();
        if (parts.size() == 0) return absl::OkStatus();
        if (parts.size() != ids.size()) {
          return Malformed(fmt::format("NeedSymbols: {} parts are listed for {} tables", parts.size(), ids.size()));
        }
        for (unsigned i = 0; i < parts.size(); ++i) {
          (*requests)[i].part = {parts[i].getOffset(), parts[i].getTotalBytes(), parts[i].getRawBytes(),
                                 parts[i].getKey()};
        }
        return absl::OkStatus();
      });
}

std::string EncodeSymbolChunk(const SymbolChunk& chunk) {
  TRIBUTARY_CHECK(chunk.bytes.size() <= kSymbolChunkBytes);
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::SymbolChunk>();
  WriteId(root.initId(), chunk.id);
  root.setOffset(chunk.offset);
  root.setTotalBytes(chunk.total_bytes);
  root.setRawBytes(chunk.raw_bytes);
  root.setBytes(DataOf(chunk.bytes));
  std::string cut;
  root.setUnavailable(TextOf(chunk.unavailable, cut, kTextBytesMax));
  root.setKey(chunk.key);
  return ToPayload(message);
}

absl::StatusOr<SymbolChunk> DecodeSymbolChunk(std::string_view payload) {
  return ReadPayload<wire::SymbolChunk, SymbolChunk>(
      payload, [](wire::SymbolChunk::Reader root, SymbolChunk* chunk) -> absl::Status {
        RETURN_IF_ERROR(ReadId(root.getId(), &chunk->id));
        chunk->offset = root.getOffset();
        chunk->total_bytes = root.getTotalBytes();
        chunk->raw_bytes = root.getRawBytes();
        chunk->key = root.getKey();
        const std::string_view bytes = ViewOf(root.getBytes());
        RETURN_IF_ERROR(ReadText(root.getUnavailable(), "reason", kTextBytesMax, &chunk->unavailable));
        if (!chunk->unavailable.empty()) {
          if (chunk->offset != 0 || chunk->total_bytes != 0 || chunk->raw_bytes != 0 || chunk->key != 0 ||
              !bytes.empty()) {
            return Malformed("SymbolChunk: there is both a table and a reason for a missing table");
          }
          return absl::OkStatus();
        }
        if (bytes.empty() || bytes.size() > kSymbolChunkBytes) {
          return Malformed(
              fmt::format("SymbolChunk: {} bytes, but 1 to {} are allowed", bytes.size(), kSymbolChunkBytes));
        }
        if (chunk->offset > chunk->total_bytes || bytes.size() > chunk->total_bytes - chunk->offset) {
          return Malformed("SymbolChunk: there are bytes after the end of the table");
        }
        chunk->bytes.assign(bytes);
        return absl::OkStatus();
      });
}

std::string EncodeNeedDigests(const std::vector<ExecutableId>& ids) {
  TRIBUTARY_CHECK(ids.size() <= kNeedSymbolsMax);
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::NeedDigests>().initIds(static_cast<unsigned>(ids.size()));
  for (unsigned i = 0; i < ids.size(); ++i) WriteId(list[i], ids[i]);
  return ToPayload(message);
}

absl::StatusOr<std::vector<ExecutableId>> DecodeNeedDigests(std::string_view payload) {
  return ReadPayload<wire::NeedDigests, std::vector<ExecutableId>>(
      payload, [](wire::NeedDigests::Reader root, std::vector<ExecutableId>* to) -> absl::Status {
        const auto ids = root.getIds();
        if (ids.size() > kNeedSymbolsMax) {
          return Malformed(fmt::format("NeedDigests: {} ids, but at most {} are allowed", ids.size(), kNeedSymbolsMax));
        }
        for (const auto& id : ids) RETURN_IF_ERROR(ReadId(id, &to->emplace_back()));
        return absl::OkStatus();
      });
}

std::string EncodeSymbolDigest(const SymbolDigestAnswer& answer) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::SymbolDigest>();
  WriteId(root.initId(), answer.id);
  std::string cut;
  root.setUnavailable(TextOf(answer.unavailable, cut, kTextBytesMax));
  if (!answer.unavailable.empty()) return ToPayload(message);
  root.setSha256(kj::arrayPtr(answer.sha256.data(), answer.sha256.size()));
  root.setSource(answer.source);
  return ToPayload(message);
}

absl::StatusOr<SymbolDigestAnswer> DecodeSymbolDigest(std::string_view payload) {
  return ReadPayload<wire::SymbolDigest, SymbolDigestAnswer>(
      payload, [](wire::SymbolDigest::Reader root, SymbolDigestAnswer* answer) -> absl::Status {
        RETURN_IF_ERROR(ReadId(root.getId(), &answer->id));
        RETURN_IF_ERROR(ReadText(root.getUnavailable(), "reason", kTextBytesMax, &answer->unavailable));
        const std::string_view sha256 = ViewOf(root.getSha256());
        if (sha256.size() != (answer->unavailable.empty() ? answer->sha256.size() : 0)) {
          return Malformed(fmt::format("SymbolDigest: the digest has {} bytes", sha256.size()));
        }
        std::copy(sha256.begin(), sha256.end(), answer->sha256.begin());
        answer->source = root.getSource();
        return absl::OkStatus();
      });
}

std::string EncodeOptOuts(const std::vector<std::string>& containers) {
  TRIBUTARY_CHECK(containers.size() <= kOptOutsMax);
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::OptOuts>().initContainers(static_cast<unsigned>(containers.size()));
  for (unsigned i = 0; i < containers.size(); ++i) {
    TRIBUTARY_CHECK(!containers[i].empty() && containers[i].size() <= kOptOutIdBytesMax);
    list.set(i, capnp::Text::Reader(containers[i].c_str(), containers[i].size()));
  }
  return ToPayload(message);
}

absl::StatusOr<std::vector<std::string>> DecodeOptOuts(std::string_view payload) {
  return ReadPayload<wire::OptOuts, std::vector<std::string>>(
      payload, [](wire::OptOuts::Reader root, std::vector<std::string>* to) -> absl::Status {
        const auto containers = root.getContainers();
        if (containers.size() > kOptOutsMax) {
          return Malformed(
              fmt::format("OptOuts: {} containers, but at most {} are allowed", containers.size(), kOptOutsMax));
        }
        for (const auto& id : containers) {
          if (id.size() == 0) return Malformed("OptOuts: a container id is empty");
          RETURN_IF_ERROR(ReadText(id, "container id", kOptOutIdBytesMax, &to->emplace_back()));
        }
        return absl::OkStatus();
      });
}

std::string EncodeHeartbeat(MonotonicNs sent_at) {
  capnp::MallocMessageBuilder message;
  message.initRoot<wire::Heartbeat>().setSentAtNs(sent_at.value);
  return ToPayload(message);
}

absl::StatusOr<MonotonicNs> DecodeHeartbeat(std::string_view payload) {
  return ReadPayload<wire::Heartbeat, MonotonicNs>(
      payload, [](wire::Heartbeat::Reader root, MonotonicNs* sent_at) -> absl::Status {
        *sent_at = MonotonicNs{root.getSentAtNs()};
        return absl::OkStatus();
      });
}

std::string EncodeGoodbye(const Goodbye& goodbye) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Goodbye>();
  std::string cut;
  root.setReason(TextOf(goodbye.reason, cut, kReasonBytesMax));
  root.setRetry(goodbye.retry);
  root.setRejectedSequence(goodbye.rejected_sequence);
  return ToPayload(message);
}

absl::StatusOr<Goodbye> DecodeGoodbye(std::string_view payload) {
  return ReadPayload<wire::Goodbye, Goodbye>(payload, [](wire::Goodbye::Reader root, Goodbye* goodbye) -> absl::Status {
    goodbye->retry = root.getRetry();
    goodbye->rejected_sequence = root.getRejectedSequence();
    return ReadText(root.getReason(), "reason", kReasonBytesMax, &goodbye->reason);
  });
}

}  // namespace tributary::intake
