#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "kernel-collector/probes/perf_ring.h"
#include "kernel-collector/probes/runtime_chain.h"
#include "kernel-collector/probes/sample_record.h"
#include "kernel-collector/probes/sideband_record.h"

// Perf rings with arbitrary content. The first byte says where in the ring the rest begins, so that records wrap.

using tributary::PerfRing;

namespace {

void Require(bool holds) {
  if (!holds) abort();
}

// Checks that `view` lies inside the record.
void CheckView(std::span<const uint8_t> record, std::string_view view) {
  if (view.empty()) return;
  auto* begin = reinterpret_cast<const char*>(record.data());
  Require(view.data() >= begin && view.data() + view.size() < begin + record.size());
}

void CheckRecord(std::span<const uint8_t> record) {
  tributary::SidebandRecord parsed = tributary::ParseSidebandRecord(record);
  if (auto* mmap = std::get_if<tributary::MmapEvent>(&parsed)) {
    CheckView(record, mmap->path);
    Require(mmap->executable && mmap->length > 0 && mmap->start + mmap->length >= mmap->start);
  }
  if (auto* comm = std::get_if<tributary::CommEvent>(&parsed)) CheckView(record, comm->comm);
  if (auto* code = std::get_if<tributary::KernelCodeEvent>(&parsed)) {
    CheckView(record, code->name);
    Require(!code->name.empty() && code->length > 0 && code->start + code->length > code->start);
  }
  if (auto* cgroup = std::get_if<tributary::CgroupEvent>(&parsed)) {
    CheckView(record, cgroup->path);
    Require(cgroup->id != 0 && !cgroup->path.empty());
  }
#ifdef TRIBUTARY_PLANT_CRASH
  // Only a record with matching header, type and size gets here.
  if (auto* fork = std::get_if<tributary::ForkEvent>(&parsed)) Require(fork->pid.value != 77);
#endif
}

void CheckChains(std::span<const uint64_t> words) {
  tributary::RuntimeChains chains(words);
  size_t used = 0;
  [[maybe_unused]] volatile uint64_t seen = 0;
  while (const auto chain = chains.Next()) {
    used += 1 + 2 * chain->size();
    for (size_t i = 0; i < chain->size(); ++i) seen = chain->At(i).check;
  }
  Require(used <= words.size());
}

void CheckSample(std::span<const uint8_t> bytes) {
  std::vector<uint64_t> aligned((bytes.size() + 7) / 8);
  auto* begin = reinterpret_cast<uint8_t*>(aligned.data());
  std::ranges::copy(bytes, begin);
  // Reads all bytes that a record points at: a sanitizer finds reads outside of it.
  [[maybe_unused]] volatile uint64_t seen = 0;
  for (auto record : {tributary::SampleRecord::FromSample({begin, bytes.size()}),
                      tributary::SampleRecord::FromCopy({begin, bytes.size()})}) {
    if (!record) continue;
    for (uint64_t frame : record->frames) seen = frame;
    CheckChains(record->chains);
    for (uint8_t byte : record->stack) seen = byte;
    for (uint64_t word : record->tail) seen = word;
    if (record->resume != nullptr) seen = record->resume->start_stack;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 || size > 1 << 16) return 0;
  std::span<const uint8_t> bytes(data + 1, size - 1);
  CheckRecord(bytes);
  CheckSample(bytes);

  std::vector<uint8_t> memory(std::bit_ceil(std::max<size_t>(bytes.size(), 64)));
  size_t start = size_t{data[0]} * 8 % memory.size();
  for (size_t i = 0; i < bytes.size(); ++i) memory[(start + i) % memory.size()] = bytes[i];
  perf_event_mmap_page page = {};
  PerfRing ring(&page, memory);
  // Moves the reader to the beginning of the records.
  page.data_head = start;
  ring.Refresh();
  while (!ring.Next().empty()) ring.Pop();
  page.data_head = start + bytes.size();
  ring.Refresh();
  size_t records = 0;
  for (std::span<const uint8_t> record; !(record = ring.Next()).empty(); ring.Pop()) {
    CheckRecord(record);
    Require(++records <= bytes.size() / sizeof(perf_event_header));
  }
  ring.Commit();
  Require(page.data_tail == page.data_head);
  return 0;
}
