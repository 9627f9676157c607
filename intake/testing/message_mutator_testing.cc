#include "intake/testing/message_mutator_testing.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/varint.h"
#include "intake/codec/columns.h"
#include "intake/wire/wire.h"

// Must come after wire.h, which makes it compile.
#include <capnp/dynamic.h>

namespace tributary::intake {
namespace {

constexpr size_t kColumnsBytesMax = 1u << 20;

std::optional<capnp::StructSchema> SchemaOf(MessageType type) {
  using capnp::Schema;
  switch (type) {
    case MessageType::kHello:
      return Schema::from<wire::Hello>();
    case MessageType::kWelcome:
      return Schema::from<wire::Welcome>();
    case MessageType::kDefinitions:
      return Schema::from<wire::Definitions>();
    case MessageType::kBatch:
      return Schema::from<wire::Batch>();
    case MessageType::kAck:
      return Schema::from<wire::Ack>();
    case MessageType::kNeedDictionary:
      return Schema::from<wire::NeedDictionary>();
    case MessageType::kNeedSymbols:
      return Schema::from<wire::NeedSymbols>();
    case MessageType::kSymbolChunk:
      return Schema::from<wire::SymbolChunk>();
    case MessageType::kHeartbeat:
      return Schema::from<wire::Heartbeat>();
    case MessageType::kGoodbye:
      return Schema::from<wire::Goodbye>();
    case MessageType::kMetadata:
      return Schema::from<wire::Metadata>();
    case MessageType::kNeedDigests:
      return Schema::from<wire::NeedDigests>();
    case MessageType::kSymbolDigest:
      return Schema::from<wire::SymbolDigest>();
    case MessageType::kOptOuts:
      return Schema::from<wire::OptOuts>();
  }
  return std::nullopt;
}

std::optional<std::vector<uint64_t>> NumbersOf(std::string_view column) {
  std::vector<uint64_t> numbers;
  VarintReader reader(column);
  while (!reader.AtEnd()) {
    uint64_t number = 0;
    if (!reader.Read(&number)) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

std::string ColumnOf(const std::vector<uint64_t>& numbers) {
  std::string column;
  for (uint64_t number : numbers) AppendVarint(column, number);
  return column;
}

using Packings = std::span<const ColumnPacking>;

std::optional<std::vector<std::string>> Unpacked(Packings packings, std::string_view bytes) {
  UnpackedColumns out;
  if (!UnpackColumns(packings, bytes, kColumnsBytesMax, &out)) return std::nullopt;
  return std::move(out.columns);
}

std::optional<std::vector<std::string>> Plain(Packings packings, std::string_view bytes) {
  std::vector<std::string> columns(packings.size());
  VarintReader reader(bytes);
  while (!reader.AtEnd()) {
    uint64_t number = 0, length = 0;
    std::string_view column;
    if (!reader.Read(&number) || !reader.Read(&length) || !reader.ReadBytes(length, &column)) return std::nullopt;
    if (number > 0 && number < columns.size()) columns[number] = column;
  }
  return columns;
}

// Returns whether PackColumns accepts the columns.
bool IsCanonical(Packings packings, const std::vector<std::string>& columns) {
  for (size_t i = 1; i < columns.size(); ++i) {
    if (packings[i].layout == ColumnPacking::Layout::kBytes) continue;
    const auto numbers = NumbersOf(columns[i]);
    if (!numbers || ColumnOf(*numbers) != columns[i]) return false;
  }
  return true;
}

std::string PlainBlob(const std::vector<std::string>& columns) {
  std::string out;
  for (size_t i = 1; i < columns.size(); ++i) {
    if (columns[i].empty()) continue;
    AppendVarint(out, i);
    AppendVarint(out, columns[i].size());
    out += columns[i];
  }
  return out;
}

}  // namespace

// Descends to one field and changes it.
struct MessageMutator::Fields {
  MessageMutator& mutator;
  size_t bytes_max;

  void Change(capnp::DynamicStruct::Builder at) {
    const auto fields = at.getSchema().getFields();
    // If a message has columns, they are most of it.
    if (at.getSchema().findFieldByName("columns") != nullptr && mutator.OneIn(2)) return ChangeColumns(at);
    const auto field = fields[static_cast<unsigned>(mutator.Below(fields.size()))];
    switch (field.getType().which()) {
      case capnp::schema::Type::STRUCT:
        return Change(at.get(field).as<capnp::DynamicStruct>());
      case capnp::schema::Type::LIST:
        return ChangeList(at, field);
      case capnp::schema::Type::DATA: {
        const kj::StringPtr name = field.getProto().getName();
        if (name == "columns" || name == "packedColumns") return ChangeColumns(at);
        const std::string bytes = mutator.Bytes(ViewOf(at.get(field).as<capnp::Data>().asReader()), bytes_max);
        return at.set(field, DataOf(bytes));
      }
      case capnp::schema::Type::TEXT: {
        const std::string text = mutator.Bytes(ViewOf(at.get(field).as<capnp::Text>().asReader()), bytes_max);
        return at.set(field, capnp::Text::Reader(text.c_str(), text.size()));
      }
      default:
        at.set(field, NumberFor(field.getType(), at.get(field).asReader()));
    }
  }

  void ChangeList(capnp::DynamicStruct::Builder at, capnp::StructSchema::Field field) {
    auto list = at.get(field).as<capnp::DynamicList>();
    if (list.size() == 0 || mutator.OneIn(4)) {
      list = at.init(field, static_cast<unsigned>(mutator.Below(70))).as<capnp::DynamicList>();
    }
    if (list.size() == 0) return;
    const auto index = static_cast<unsigned>(mutator.Below(list.size()));
    const capnp::Type type = list.getSchema().getElementType();
    if (type.isStruct()) return Change(list[index].as<capnp::DynamicStruct>());
    list.set(index, NumberFor(type, list[index].asReader()));
  }

  void ChangeColumns(capnp::DynamicStruct::Builder at) {
    const bool is_batch = at.getSchema() == capnp::Schema::from<wire::Batch>();
    const bool is_family = at.getSchema() == capnp::Schema::from<wire::Family>();
    const Packings packings = is_batch    ? Packings(kSamplePackings)
                              : is_family ? Packings(kEventPackings)
                                          : Packings(kDefinitionPackings);
    const bool packed = at.has("packedColumns");
    const char* field = packed ? "packedColumns" : "columns";
    const std::string_view bytes = ViewOf(at.get(field).as<capnp::Data>().asReader());
    auto columns = packed ? Unpacked(packings, bytes) : Plain(packings, bytes);
    if (!columns || mutator.OneIn(8)) {
      const std::string changed = mutator.Bytes(bytes, bytes_max);
      return at.set(field, DataOf(changed));
    }
    columns = mutator.ChangeColumn(*std::move(columns), bytes_max);
    at.clear(field);
    if (mutator.OneIn(2) && IsCanonical(packings, *columns)) {
      const std::string changed = PackColumns(packings, *columns);
      return at.set("packedColumns", DataOf(changed));
    }
    const std::string changed = PlainBlob(*columns);
    at.set("columns", DataOf(changed));
  }

  // Returns a value that the type can hold: any other value would throw.
  capnp::DynamicValue::Reader NumberFor(capnp::Type type, const capnp::DynamicValue::Reader& old) {
    if (type.isBool()) return mutator.OneIn(2);
    uint64_t before = 0;
    if (old.getType() == capnp::DynamicValue::INT) before = static_cast<uint64_t>(old.as<int64_t>());
    if (old.getType() == capnp::DynamicValue::UINT) before = old.as<uint64_t>();
    const uint64_t number = mutator.Number(before);
    switch (type.which()) {
      case capnp::schema::Type::UINT8:
        return static_cast<uint8_t>(number);
      case capnp::schema::Type::UINT16:
        return static_cast<uint16_t>(number);
      case capnp::schema::Type::UINT32:
        return static_cast<uint32_t>(number);
      case capnp::schema::Type::INT64:
        return static_cast<int64_t>(number);
      default:
        return number;
    }
  }
};

uint64_t MessageMutator::Number(uint64_t old) {
  constexpr unsigned kBits[] = {4, 8, 12, 16, 17, 20, 32, 64};
  switch (Below(4)) {
    case 0:
      return old + Below(17) - 8;
    case 1:
      return (uint64_t{1} << Below(64)) + Below(3) - 1;
    default:
      return (uint64_t{random_()} << 33 ^ random_()) & (UINT64_MAX >> (64 - kBits[Below(8)]));
  }
}

std::string MessageMutator::Bytes(std::string_view bytes, size_t bytes_max) {
  std::string changed(bytes.substr(0, bytes_max));
  const size_t size = changed.size();
  changed.resize(std::min(bytes_max, size + 64));
  if (changed.empty()) return changed;
  changed.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(changed.data()), size, changed.size()));
  return changed;
}

std::string MessageMutator::Varints(std::string_view column, size_t bytes_max) {
  auto numbers = NumbersOf(column);
  if (!numbers) return Bytes(column, bytes_max);
  const size_t at = Below(numbers->size() + 1);
  const auto here = numbers->begin() + static_cast<ptrdiff_t>(at);
  const bool at_end = at == numbers->size();
  switch (at_end ? 0 : Below(4)) {
    case 0:
      numbers->insert(here, Number(at_end ? 0 : *here));
      break;
    case 1:
      numbers->erase(here);
      break;
    default:
      *here = Number(*here);
  }
  return ColumnOf(*numbers).substr(0, bytes_max);
}

std::vector<std::string> MessageMutator::ChangeColumn(std::vector<std::string> columns, size_t bytes_max) {
  std::string& column = columns[1 + Below(columns.size() - 1)];
  column = OneIn(4) ? Bytes(column, bytes_max) : Varints(column, bytes_max);
  return columns;
}

std::string MessageMutator::Message(MessageType type, std::string_view payload, size_t bytes_max) {
  const auto schema = SchemaOf(type);
  if (!schema || payload.size() % sizeof(capnp::word) != 0 || OneIn(8)) return Bytes(payload, bytes_max);
  kj::Array<capnp::word> words = kj::heapArray<capnp::word>(payload.size() / sizeof(capnp::word));
  std::copy(payload.begin(), payload.end(), words.asBytes().begin());
  try {
    capnp::FlatArrayMessageReader reader(words, {.traversalLimitInWords = 4 * words.size(), .nestingLimit = 8});
    capnp::MallocMessageBuilder builder;
    builder.setRoot(reader.getRoot<capnp::DynamicStruct>(*schema));
    Fields{*this, bytes_max}.Change(builder.getRoot<capnp::DynamicStruct>(*schema));
    // The copy leaves out the replaced parts.
    capnp::MallocMessageBuilder compact;
    compact.setRoot(builder.getRoot<capnp::DynamicStruct>(*schema).asReader());
    std::string changed = ToPayload(compact);
    return changed.size() <= bytes_max ? changed : std::string(payload);
  } catch (const kj::Exception&) {
    return Bytes(payload, bytes_max);
  }
}

std::string MessageMutator::Frames(std::string_view stream, size_t bytes_max) {
  std::vector<std::string> frames;  // the last entry: the bytes that are no whole frame
  while (stream.size() >= kHeaderBytes) {
    uint32_t stored = 0;
    std::memcpy(&stored, &stream[20], sizeof(stored));
    if (stored > stream.size() - kHeaderBytes) break;
    frames.emplace_back(stream.substr(0, kHeaderBytes + stored));
    stream.remove_prefix(frames.back().size());
  }
  frames.emplace_back(stream);
  const size_t at = Below(frames.size());
  std::string& frame = frames[at];
  if (at + 1 == frames.size() || OneIn(16)) {
    frame = Bytes(frame, bytes_max);
  } else if (const uint64_t choice = Below(16); choice == 0) {
    frames.insert(frames.begin() + static_cast<ptrdiff_t>(Below(frames.size())), std::string(frame));
  } else if (choice == 1) {
    frames.erase(frames.begin() + static_cast<ptrdiff_t>(at));
  } else if (choice == 2) {
    std::swap(frame, frames[Below(frames.size() - 1)]);
  } else if (choice == 3) {
    frame.replace(4, 4, Bytes(frame.substr(4, 4), 4));  // version, type, flags, channel
    frame.resize(std::max(frame.size(), kHeaderBytes));
  } else if (choice < 6) {
    const uint64_t sequence = Number(0);
    std::memcpy(&frame[8], &sequence, sizeof(sequence));
  } else {
    FrameDecoder decoder;
    decoder.Append(frame);
    Frame opened;
    const auto got = decoder.Next(&opened);  // opens compressed frames, unless their checksum is wrong
    const auto type = static_cast<MessageType>(frame[5]);
    const bool whole = got.ok() && *got;
    if (!whole && frame[6] != 0) {
      frame = Bytes(frame, bytes_max);
    } else {
      const std::string payload =
          Message(type, whole ? opened.payload : std::string_view(frame).substr(kHeaderBytes), bytes_max);
      const auto size = static_cast<uint32_t>(payload.size());
      frame.resize(kHeaderBytes);
      frame += payload;
      frame[6] = 0;
      std::memcpy(&frame[16], &size, sizeof(size));
      std::memcpy(&frame[20], &size, sizeof(size));
    }
  }
  std::string changed;
  for (const std::string& each : frames) changed += each;
  return changed.substr(0, bytes_max);
}

}  // namespace tributary::intake
