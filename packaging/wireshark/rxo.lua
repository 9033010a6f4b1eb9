-- Fields for the aggregates in files that `rxo coalesce` writes, so that Wireshark and tshark can filter
-- by them and show them in columns: rxo.segments > 10, rxo.flushed == "psh".
--
-- Copy this file to the personal Lua plugins (Help > About > Folders), or run
-- `tshark -X lua_script:rxo.lua -r FILE -T fields -e frame.number -e rxo.segments -e rxo.flushed`.

local rxo = Proto("rxo", "rxo: an aggregate of received segments")

local segments = ProtoField.uint32("rxo.segments", "Segments")
local bytes = ProtoField.uint32("rxo.payload_bytes", "Bytes of payload")
local flushed = ProtoField.string("rxo.flushed", "Reason of the flush")
rxo.fields = { segments, bytes, flushed }

-- The comment of a packet is what pcapng and Lua have in common: scripts cannot read custom options.
local comment = Field.new("frame.comment")
local PATTERN = "^rxo: (%d+) segments, (%d+) bytes of payload, flushed: (.+)$"

function rxo.dissector(buffer, packet, tree)
    for _, found in ipairs({ comment() }) do
        local count, payload, reason = found.value:match(PATTERN)
        if count then
            local branch = tree:add(rxo, buffer(), "rxo: an aggregate of " .. count .. " segments")
            branch:add(segments, tonumber(count)):set_generated()
            branch:add(bytes, tonumber(payload)):set_generated()
            branch:add(flushed, reason):set_generated()
        end
    end
end

register_postdissector(rxo)
