-------------------------------- MODULE Reserve --------------------------------
(* For those who cannot wait until what was lent is over: a primary that tells a  *)
(* replica late.  A fail-over goes on with the replica's state, and the former    *)
(* primary may go on lending to those who still talk to it.                       *)
(*                                                                                *)
(*   "async"    lends, and tells the replica some time                            *)
(*   "wait"     answers only when the replica has it                              *)
(*   "reserve"  lends only below a mark that the replica has; a fail-over goes    *)
(*              on from there                                                     *)
EXTENDS Integers
CONSTANTS Limit, Batch, Chunk, Failovers, Lag, Former, Mode
VARIABLES primary, replica,   \* lent so far, and the mark
          former,             \* a primary that was replaced, or Gone
          held,               \* lent, and not answered yet ("wait")
          out, adm, failed
vars == <<primary, replica, former, held, out, adm, failed>>

Min(a, b) == IF a < b THEN a ELSE b
Gone == [lent |-> Limit, mark |-> Limit]
First == [lent |-> 0, mark |-> IF Mode = "reserve" THEN 0 ELSE Limit]
Init == /\ primary = First /\ replica = First /\ former = Gone
        /\ held = 0 /\ out = 0 /\ adm = 0 /\ failed = 0

Room(s) == Min(Batch, Min(s.mark, Limit) - s.lent)
\* What may be lent is below the mark that the replica has.
Covered == [primary EXCEPT !.mark = IF Mode = "reserve" THEN Min(@, replica.mark) ELSE @]
NotFarAhead == Mode = "async" => primary.lent - replica.lent < Lag * Batch

Lend == /\ Room(Covered) > 0 /\ NotFarAhead
        /\ primary' = [primary EXCEPT !.lent = @ + Room(Covered)]
        /\ IF Mode = "wait" THEN held' = held + Room(Covered) /\ UNCHANGED out
                            ELSE out' = out + Room(Covered) /\ UNCHANGED held
        /\ UNCHANGED <<replica, former, adm, failed>>
Mark == /\ Mode = "reserve" /\ primary.mark < Limit /\ primary.mark <= primary.lent
        /\ primary' = [primary EXCEPT !.mark = Min(Limit, primary.lent + Chunk)]
        /\ UNCHANGED <<replica, former, held, out, adm, failed>>
Replicate == /\ replica # primary /\ replica' = primary
             /\ out' = out + held /\ held' = 0
             /\ UNCHANGED <<primary, former, adm, failed>>
\* What was reserved may have been lent: go on above it.
Promoted == IF Mode = "reserve" THEN [replica EXCEPT !.lent = replica.mark] ELSE replica
Failover == /\ failed < Failovers /\ failed' = failed + 1
            /\ primary' = Promoted /\ replica' = Promoted
            /\ former' = CASE Mode = "wait" -> Gone      \* no replica confirms: it answers nobody
                           [] Mode = "reserve" -> Covered
                           [] OTHER -> primary
            /\ held' = 0 /\ UNCHANGED <<out, adm>>
FormerLends == /\ Former /\ Room(former) > 0
               /\ former' = [former EXCEPT !.lent = @ + Room(former)]
               /\ out' = out + Room(former)
               /\ UNCHANGED <<primary, replica, held, adm, failed>>
FormerEnds == /\ former # Gone /\ former' = Gone
              /\ UNCHANGED <<primary, replica, held, out, adm, failed>>
Spend == /\ out > 0 /\ out' = out - 1 /\ adm' = adm + 1
         /\ UNCHANGED <<primary, replica, former, held, failed>>

Next == Lend \/ Mark \/ Replicate \/ Failover \/ FormerLends \/ FormerEnds \/ Spend
Spec == Init /\ [][Next]_vars

Cap == adm + out <= Limit
LagCap == adm + out <= Limit + Failovers * Lag * Batch   \* "async", without a former primary
Reached == adm < Limit                                   \* must be violated
================================================================================
