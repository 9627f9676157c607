#include "intake/codec/packed_columns.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "base/status.h"
#include "base/varint.h"

namespace tributary::intake {
namespace {

constexpr size_t kAfterModels = 5;

// Returns `count` models that have learned nothing. They are valid until the next call: columns are coded one after the
// other. Most columns are short, so new memory for the models would cost more than their use.
std::span<BitModel> FreshModels(size_t count) {
  thread_local std::vector<BitModel> models;
  if (models.size() < count) models.resize(count);
  static_assert(std::is_trivially_copyable_v<BitModel>);
  std::memset(static_cast<void*>(models.data()), 0, count * sizeof(BitModel));
  return {models.data(), count};
}

// The models of one column, and the index of the next model to use. Only one such object may be in use at a time.
class ColumnModels {
 public:
  explicit ColumnModels(const ColumnPacking& packing)
      : packing_(packing),
        size_(NumberModel::SizeOf(packing.kind)),
        models_(FreshModels(ModelCount(packing) * size_)) {}

  NumberModel Next() { return NumberModel(packing_.kind, models_.subspan(next_ * size_, size_)); }
  void Coded(uint64_t value) {
    if (packing_.layout == ColumnPacking::Layout::kAfter) next_ = value < 3 ? value : value < 16 ? 3 : 4;
    if (packing_.layout == ColumnPacking::Layout::kRecords) next_ = (next_ + 1) % packing_.fields;
  }

 private:
  static size_t ModelCount(const ColumnPacking& packing) {
    switch (packing.layout) {
      case ColumnPacking::Layout::kAfter:
        return kAfterModels;
      case ColumnPacking::Layout::kRecords:
        return packing.fields;
      default:
        return 1;
    }
  }

  const ColumnPacking packing_;
  const size_t size_;
  const std::span<BitModel> models_;
  size_t next_ = 0;
};

// Codes a byte by eight decisions, which depend on the three highest bits of the previous byte. Only one such object
// may be in use at a time.
class ByteModel {
 public:
  void Put(RangeEncoder& to, uint8_t byte) {
    uint32_t node = 1;
    for (int i = 7; i >= 0; --i) {
      const bool bit = (byte >> i & 1) != 0;
      to.Put(models_[before_ + node], bit);
      node = node << 1 | (bit ? 1 : 0);
    }
    before_ = byte >> 5 << 8;
  }
  uint8_t Get(RangeDecoder& from) {
    uint32_t node = 1;
    while (node < 256) node = node << 1 | (from.Get(models_[before_ + node]) ? 1 : 0);
    before_ = node << 24 >> 29 << 8;
    return static_cast<uint8_t>(node);
  }

 private:
  const std::span<BitModel> models_ = FreshModels(8 << 8);
  uint32_t before_ = 0;
};

// Appends `count` numbers to `column`, or fewer if the column grows beyond `bytes_max`. Works on its own copy of the
// decoder: no other pointer can refer to the copy, so it stays in registers. Otherwise every byte read would first
// write the decoder to memory.
void UnpackNumbers(const ColumnPacking& packing, uint64_t count, size_t bytes_max, RangeDecoder* decoder,
                   std::string* column) {
  RangeDecoder from = *decoder;
  ColumnModels models(packing);
  for (; count > 0 && column->size() <= bytes_max; --count) {
    const uint64_t value = models.Next().Get(from);
    models.Coded(value);
    AppendVarint(*column, value);
  }
  *decoder = from;
}

// The model of how many numbers columns have. It stays in use while the models of columns come and go.
struct CountModel {
  std::array<BitModel, NumberModel::SizeOf(NumberKind::kWide)> memory{};
  NumberModel model{NumberKind::kWide, memory};
};

// Counts the numbers of a column: its bytes below 0x80.
size_t NumberCount(std::string_view column) {
  size_t count = 0;
  for (char byte : column) count += (static_cast<uint8_t>(byte) < 0x80) ? 1 : 0;
  return count;
}

}  // namespace

std::string PackColumns(std::span<const ColumnPacking> packings, std::span<const std::string> columns) {
  TRIBUTARY_CHECK(packings.size() == columns.size());
  RangeEncoder to;
  CountModel counts;
  counts.model.Put(to, columns.size());
  for (size_t i = 1; i < columns.size(); ++i) {
    const std::string& column = columns[i];
    if (packings[i].layout == ColumnPacking::Layout::kBytes) {
      counts.model.Put(to, column.size());
      ByteModel model;
      for (char byte : column) model.Put(to, static_cast<uint8_t>(byte));
      continue;
    }
    counts.model.Put(to, NumberCount(column));
    if (column.empty()) continue;
    ColumnModels models(packings[i]);
    VarintReader reader(column);
    while (!reader.AtEnd()) {
      uint64_t value = 0;
      TRIBUTARY_CHECK(reader.Read(&value));
      models.Next().Put(to, value);
      models.Coded(value);
    }
  }
  return std::move(to).Finish();
}

bool UnpackColumns(std::span<const ColumnPacking> packings, std::string_view packed, size_t bytes_max,
                   UnpackedColumns* out) {
  RangeDecoder from(packed);
  CountModel counts;
  const uint64_t column_count = counts.model.Get(from);
  out->unknown = 0;
  out->columns.assign(packings.size(), {});
  out->packed_bytes.assign(packings.size(), 0);
  size_t left = bytes_max;
  for (size_t i = 1; i < packings.size() && i < column_count; ++i) {
    std::string& column = out->columns[i];
    const size_t before = from.bytes_read();
    uint64_t count = counts.model.Get(from);
    if (count > left) return false;  // each takes at least a byte
    if (count == 0) continue;
    if (packings[i].layout == ColumnPacking::Layout::kBytes) {
      ByteModel model;
      for (; count > 0; --count) column.push_back(static_cast<char>(model.Get(from)));
    } else {
      UnpackNumbers(packings[i], count, left, &from, &column);
    }
    if (column.size() > left) return false;
    left -= column.size();
    out->packed_bytes[i] = from.bytes_read() - before;
  }
  if (column_count > packings.size()) {
    out->unknown = static_cast<uint32_t>(std::min<uint64_t>(column_count - packings.size(), 64));
  }
  return column_count > packings.size() || from.AtEnd();
}

}  // namespace tributary::intake
