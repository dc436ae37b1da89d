// The memory of a pass on one device, or on the members of a group. There is a PassMemory for each
// member of this process. GroupMemory knows which member has which of the tensors that several use.
//
// A shared tensor has a copy at every member that uses it. The member that writes it has the only
// good copy. Before another member's dispatches, it goes there by way of the host. So a cache,
// which one member uses alone, never moves.
#pragma once

#include <memory>
#include <set>

#include "recording/pass_memory.h"

namespace vkformer {

class GroupMemory {
 public:
  // `lane`: which of the passes that run beside each other this is of.
  explicit GroupMemory(const LoadedModel& model, uint32_t lane = 0);

  size_t members() const { return members_.size(); }
  // Of a member; null where it is of another process.
  PassMemory* member(size_t index) const { return members_[index].get(); }
  // Of a pass on one device.
  PassMemory& only() const { return *members_[0]; }

  // Before anything is allocated: tensors that more than one member uses, and their bytes.
  void share(std::map<std::string, uint64_t> tensors);
  bool shared(const std::string& name) const { return shared_.count(name) != 0; }
  // `access` with what is shared, which the host reads and writes.
  HostAccess with_shared(HostAccess access) const;

  // To every copy.
  Status write(const std::string& name, uint64_t word, std::span<const uint32_t> values,
               PassMemory::InFlight in_flight = PassMemory::InFlight::kMayRead);
  // To the copy of one member, as far as it is of this process.
  Status write_at(size_t at, const std::string& name, std::span<const uint32_t> values);
  // Brings `names` to a member, as far as its copies are older than another's.
  Status bring(const std::vector<std::string>& names, size_t to);
  // Runs `ranges` at a member of this process; `written` are external tensors, of which `reads` can
  // be read afterwards. Of another process's member only the note is taken that it wrote them.
  Status submit(size_t at, std::span<const RecordingRange> ranges,
                const std::vector<std::string>& written, std::span<const TensorPart> reads);
  Status send();
  Status wait();
  // After wait, at all members alike.
  Status read(const TensorPart& from, std::span<std::byte> values) const;
  int64_t submits() const;

 private:
  Result<size_t> owner_of(const std::string& name) const;
  Status bring_from(size_t from, const std::vector<std::string>& names, size_t to);

  std::vector<std::unique_ptr<PassMemory>> members_;
  std::shared_ptr<DeviceLink> link_;
  uint32_t lane_;
  std::map<std::string, uint64_t> shared_;         // bytes
  std::map<std::string, size_t> owners_;           // who wrote it last
  std::map<std::string, std::set<size_t>> stale_;  // members whose copy is older
};

}  // namespace vkformer
