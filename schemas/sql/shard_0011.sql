-- Finds the pieces of several slots. All other pieces are found by their only slot, so a query looks only at the pieces
-- of its range, and not at all newer ones. Only files of schema 2 had processes of several slots.
CREATE INDEX process_chunk_long ON process_chunk (last_slot, first_slot) WHERE first_slot < last_slot;
