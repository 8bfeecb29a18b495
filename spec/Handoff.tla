-------------------------------- MODULE Handoff --------------------------------
(* Acknowledged hand-off, as the predecessor's model has it: all grants of a node *)
(* are kept in a row, and the largest that may still come in force is reserved.   *)
(* 250,624 is the count of that model.                                            *)
EXTENDS Integers, Sequences, FiniteSets
CONSTANTS N, Limit, Grants,
          Unacked,   \* guard: all grants since the reported one are reserved, not the last
          Flight,    \* guard: what was reported in flight is reserved
          AtOnce     \* guard: a report is read in one step
VARIABLES active, hist, applied, infl, ack, rep
vars == <<active, hist, applied, infl, ack, rep>>

Nodes == 0..(N - 1)
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
SetMax(S) == CHOOSE x \in S : \A y \in S : y <= x
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})
Zero == [n \in Nodes |-> 0]

Init == /\ active \in SUBSET Nodes \ {{}} /\ hist = [n \in Nodes |-> <<>>]
        /\ applied = Zero /\ infl = Zero /\ ack = Zero /\ rep = Zero

InForce(n) == IF applied[n] = 0 THEN 0 ELSE hist[n][applied[n]]
Committed(n) == IF hist[n] = <<>> THEN 0 ELSE hist[n][Len(hist[n])]
MostUnacked(n) == SetMax({0} \cup {hist[n][i] : i \in Max(1, ack[n])..Len(hist[n])})
LastAndAck(n) == Max(Committed(n), IF ack[n] = 0 THEN 0 ELSE hist[n][ack[n]])
Reserve(n) == Max(IF Unacked THEN MostUnacked(n) ELSE LastAndAck(n),
                  IF Flight THEN rep[n] ELSE 0)

Grant(n) ==
    LET target == (Limit + Cardinality(active) - 1) \div Cardinality(active)
        left == Limit - Sum([m \in Nodes |-> Reserve(m)], active \ {n})
    IN /\ n \in active /\ Len(hist[n]) < Grants
       /\ hist' = [hist EXCEPT ![n] = Append(@, Max(0, Min(target, left)))]
       /\ UNCHANGED <<active, applied, infl, ack, rep>>
Deliver(n) == /\ n \in active
              /\ \E i \in (applied[n] + 1)..Len(hist[n]) : applied' = [applied EXCEPT ![n] = i]
              /\ UNCHANGED <<active, hist, infl, ack, rep>>
Report(n) == /\ n \in active
             /\ IF AtOnce
                THEN ack' = [ack EXCEPT ![n] = applied[n]] /\ rep' = [rep EXCEPT ![n] = infl[n]]
                ELSE \/ ack' = [ack EXCEPT ![n] = applied[n]] /\ UNCHANGED rep
                     \/ rep' = [rep EXCEPT ![n] = infl[n]] /\ UNCHANGED ack
             /\ UNCHANGED <<active, hist, applied, infl>>
Acquire(n) == /\ n \in active /\ infl[n] < InForce(n) /\ infl' = [infl EXCEPT ![n] = @ + 1]
              /\ UNCHANGED <<active, hist, applied, ack, rep>>
Release(n) == /\ infl[n] > 0 /\ infl' = [infl EXCEPT ![n] = @ - 1]
              /\ UNCHANGED <<active, hist, applied, ack, rep>>
Begun(n) == /\ hist' = [hist EXCEPT ![n] = <<>>] /\ applied' = [applied EXCEPT ![n] = 0]
            /\ infl' = [infl EXCEPT ![n] = 0] /\ ack' = [ack EXCEPT ![n] = 0]
            /\ rep' = [rep EXCEPT ![n] = 0]
Join(n) == n \notin active /\ active' = active \cup {n} /\ Begun(n)
Leave(n) == n \in active /\ Cardinality(active) > 1 /\ active' = active \ {n} /\ Begun(n)
Next == \E n \in Nodes : \/ Grant(n) \/ Deliver(n) \/ Report(n) \/ Acquire(n)
                         \/ Release(n) \/ Join(n) \/ Leave(n)
Spec == Init /\ [][Next]_vars

Order == \A n \in Nodes : ack[n] <= applied[n] /\ applied[n] <= Len(hist[n])
InflightCap == Sum(infl, Nodes) <= Limit
CommittedCap == Sum([n \in Nodes |-> Committed(n)], Nodes) <= Limit
Reached == Sum(infl, Nodes) < Limit
===============================================================================
